"""The one thread of a store that writes: group commit.

A round takes whatever waits in all journals, writes it, then makes all of it safe, then tells everybody. While a round
is under way the next one gathers: the slower the disk, the larger the rounds.
"""

import logging
import threading
from typing import Protocol

from framework.store.commits import Told, tell
from framework.store.problems import StoreError

log = logging.getLogger(__name__)


class Source(Protocol):
    """Has something to be written: a journal, or the record of the node. Its ways, in this order; any may fail."""

    def take_locked(self) -> bool:
        """Sets aside what will be written now. False: nothing after all."""

    def write(self) -> None: ...

    def sync(self) -> None: ...

    def done_locked(self) -> list[Told]: ...

    def undo(self) -> None:
        """After write or sync failed: leave on disk only what is confirmed, if that can be done."""

    def failed_locked(self, error: Exception) -> list[Told]: ...


class Writer:
    def __init__(self, name: str, lock: threading.Lock) -> None:
        self.lock = lock
        self.busy = threading.Lock()  # held during a round
        self._dirty: dict[Source, None] = {}
        self._work = threading.Condition(lock)
        self._idle = False
        self._stopping = self._stopped = False
        self._thread = threading.Thread(target=self._run, name=f"obo-store-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Writes all that waits, then ends the thread."""
        with self.lock:
            self._stopping = True
            self._work.notify()
        if self._thread.ident is not None:
            self._thread.join()
        with self.lock:
            self._stopped = True

    def wake_locked(self, source: Source) -> None:
        if self._stopped:
            raise StoreError("the store is closed: nothing can be written any more")
        self._dirty[source] = None
        if self._idle:
            self._idle = False
            self._work.notify()

    def _run(self) -> None:
        while True:
            with self.lock:
                while not self._dirty:
                    if self._stopping:
                        return
                    self._idle = True
                    self._work.wait()
                    self._idle = False
            self.round()

    def round(self) -> None:
        with self.busy:
            with self.lock:
                sources, self._dirty = self._dirty, {}
                taken = [s for s in sources if s.take_locked()]
            failed: dict[Source, Exception] = {}
            for step in (_write, _sync):  # the first sync of many takes the others along on most file systems
                for source in taken:
                    if source not in failed:
                        try:
                            step(source)
                        except Exception as e:  # a fault of ours must be told to those who wait, too
                            failed[source] = e
                            _undo(source)
            told: list[Told] = []
            with self.lock:
                for source in taken:
                    error = failed.get(source)
                    told += source.done_locked() if error is None else source.failed_locked(error)
        tell(told)


def _undo(source: Source) -> None:
    try:
        source.undo()
    except Exception as e:
        log.warning("cannot take back what was not confirmed: %s", e)


def _write(source: Source) -> None:
    source.write()


def _sync(source: Source) -> None:
    source.sync()
