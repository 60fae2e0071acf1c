"""The thread that performs what changes a backed replica, and commits it in batches.

    take what has come -> begin -> perform each -> the loop notes it -> (more has come: go on) -> commit -> Safe

All that is delivered while a commit is under way goes into the next batch. An instance that is performed, and noted by
the loop, lets the next one begin that conflicts with it: so calls of one hot row, too, share a commit. Nobody is told
of anything before the commit. If the thread is stopped, the open batch is rolled back: nobody has heard of it.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from framework.declare import Backed
from framework.ids import Sid
from framework.orb.backed.writing import Writing
from framework.orb.stage import Stage

log = logging.getLogger(__name__)

MOST = 512  # instances in a batch
LONGEST = 0.02  # seconds for which a batch is open, roughly


class Head:
    """Notes of the framework that replace all earlier ones."""

    def __init__(self, data: bytes, done: Callable[[], None]) -> None:
        self.data = data
        self.done = done


class Committer:
    def __init__(
        self,
        name: str,
        target: Backed,
        stage: Stage,
        safe: Callable[[Sequence[Sid]], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._target = target
        self._stage = stage
        self._safe = safe
        self._failed = failed
        self._bell = threading.Condition()
        self._in: deque[Writing | Head] = deque()
        self._noted: list[bytes] = []  # of the open batch
        self._wanted = 0  # so many are to be noted before the thread goes on
        self._idle = False
        self._stopping = False
        self.commits = 0
        self.batched = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # on the loop

    def enter(self, work: Writing | Head) -> None:
        self._in.append(work)
        if self._idle:
            with self._bell:
                self._bell.notify()

    def note(self, entry: bytes) -> None:
        """An instance of the open batch is known to the com layer, and this is what is written down of it."""
        with self._bell:
            self._noted.append(entry)
            if len(self._noted) == self._wanted:
                self._bell.notify()

    def stop(self) -> None:
        """What is not being committed does not happen. ``join`` waits for the end."""
        with self._bell:
            self._stopping = True
            self._bell.notify()

    def join(self, timeout: float | None = None) -> bool:
        """In another thread, or at the end of all: is it over?"""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def waiting(self) -> int:
        return len(self._in)

    # in the thread

    def _run(self) -> None:
        try:
            while self._work():
                if isinstance(self._in[0], Head):
                    self._head(self._in.popleft())
                else:
                    self._batch()
        except Exception as error:
            self._give_up(error)

    def _work(self) -> bool:
        """Until there is something to do; False if it is to stop."""
        if not self._in and not self._stopping:
            with self._bell:
                self._idle = True
                while not self._in and not self._stopping:
                    self._bell.wait()
                self._idle = False
        return not self._stopping

    def _head(self, head: "Writing | Head") -> None:
        assert isinstance(head, Head)
        self._target.begin()
        self._target.commit((), head.data)
        self._stage.on_loop(head.done)

    def _batch(self) -> None:
        self._target.begin()
        sids: list[Sid] = []
        until = time.monotonic() + LONGEST
        while len(sids) < MOST and time.monotonic() < until:
            work = self._take(MOST - len(sids))
            if not work or self._stopping:
                break
            for writing in work:
                completed = writing.perform()
                sids.append(completed.sid)
                self._stage.done(writing, completed)
            self._until_noted(len(sids))
        if self._stopping:
            self._target.rollback()
            return
        entries, self._noted = self._noted, []
        self._target.commit(entries)
        self.commits += 1
        self.batched += len(sids)
        self._stage.on_loop(lambda: self._safe(sids))

    def _take(self, most: int) -> list[Writing]:
        work: list[Writing] = []
        while self._in and len(work) < most and isinstance(self._in[0], Writing):
            work.append(self._in.popleft())  # type: ignore[arg-type]  # only this thread takes
        return work

    def _until_noted(self, wanted: int) -> None:
        with self._bell:
            self._wanted = wanted
            while len(self._noted) < wanted and not self._stopping:
                self._bell.wait()
            self._wanted = 0

    def _give_up(self, error: Exception) -> None:
        """Nothing of the open batch happened, as far as is known: a commit that failed may be in the store, and its
        notes with it."""
        try:
            self._target.rollback()
        except Exception as again:
            log.debug("no rollback: %s", again)
        self._stage.on_loop(lambda: self._failed(error))
