"""The thread that performs what changes a backed replica, and commits it in batches.

    take what has come -> begin -> perform each -> the loop notes it -> (more has come: go on) -> commit -> Safe

All that is delivered while a commit is under way goes into the next batch. An instance that is performed, and noted by
the loop, lets the next one begin that conflicts with it: so calls of one hot row, too, share a commit. Nobody is told
of anything before the commit. If the thread is stopped, the open batch is rolled back: nobody has heard of it.

What is done for transactions goes the same way (parts.py).

A call may be ended in the middle, from the loop, or meet ``Broken``. Then the batch is lost: it is rolled back, what it
had performed before is performed once more, and the call is *parked*: it is not performed before it is entered again
(verdicts.py). If the store does not do even that, it is the store's fault, and the life is over.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from framework.com.events import Completed
from framework.declare import Backed
from framework.errors import Broken, Interrupted
from framework.orb.backed.checked import checked
from framework.orb.backed.parts import Parts, Settling
from framework.orb.backed.writing import Writing
from framework.orb.durable import entries
from framework.orb.moving import capture
from framework.orb.moving.captures import Capture
from framework.orb.stage import Stage

log = logging.getLogger(__name__)

MOST = 512  # instances in a batch
LONGEST = 0.02  # seconds for which a batch is open, roughly
AGAIN = 0.5  # seconds until a call that was to be ended, and still goes on, is ended again
TRIES = 5  # for a call that was ended, and was not meant: the one before it was


class Head:
    """Notes of the framework that replace all earlier ones."""

    def __init__(self, head: entries.Head, done: Callable[[], None]) -> None:
        self.head = head
        self.done = done


class Moment:
    """The state as it is when all that came before is committed, and nothing else."""

    def __init__(self, taken: Callable[[Capture], None]) -> None:
        self.taken = taken


class Check:
    """The store works: a batch can be begun."""

    def __init__(self, done: Callable[[], None]) -> None:
        self.done = done


Work = Writing | Settling


class Committer:
    def __init__(
        self,
        name: str,
        target: Backed,
        stage: Stage,
        safe: Callable[[Sequence[Work]], None],
        failed: Callable[[Exception], None],
        parked: Callable[[Writing, Broken | None], None],
    ) -> None:
        self._target = target
        self._stage = stage
        self._parked = parked
        self.performs: Work | None = None  # now
        self._cut_at = 0.0  # when one was ended last
        self._cutting = threading.Lock()  # held while that changes, and while it is ended
        self._safe = safe
        self._failed = failed
        self._bell = threading.Condition()
        self._in: deque[Work | Head | Moment | Check] = deque()
        self._entered = 0
        self._parts = Parts(target)
        self._entries: list[entries.Entry | entries.Settled] = []  # of the open batch
        self._noted = 0  # of what was performed in it
        self._wanted = 0  # so many are to be noted before the thread goes on
        self._idle = False
        self._stopping = False
        self.commits = 0
        self.batched = 0  # calls in all of them
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # on the loop

    def enter(self, work: Work | Head | Moment | Check) -> None:
        """It is committed after all that was entered before."""
        if isinstance(work, Writing | Settling):
            self._entered += 1
            work.order = self._entered
        self._in.append(work)
        if self._idle:
            with self._bell:
                self._bell.notify()

    def note(self, *noted: entries.Entry | entries.Settled) -> None:
        """An instance of the open batch is known to the com layer, and this is what is written down of it."""
        with self._bell:
            self._entries.extend(noted)
            self._noted += 1
            if self._noted == self._wanted:
                self._bell.notify()

    def allow(self, settling: Settling) -> None:
        """That a transaction is committed may be in the store."""
        with self._bell:
            settling.allowed = True
            self._bell.notify()

    def stop(self) -> None:
        """What is not being committed does not happen. ``join`` waits for the end."""
        with self._bell:
            self._stopping = True
            self._bell.notify()
        threading.Thread(target=self._end, name=f"{self._thread.name}-end", daemon=True).start()

    def knows(self, work: Work) -> bool:
        """Has it been entered?"""
        return bool(work.order)

    def halt(self, work: Writing) -> None:
        """It is not to be performed now: it is parked when it comes to its turn; it is ended if that has come."""
        work.halted = True
        if self.performs is work:
            self._cut(work)

    def look(self) -> None:
        """An end that came between two statements has ended nothing."""
        work = self.performs
        if isinstance(work, Writing) and work.halted and time.monotonic() > self._cut_at + AGAIN:
            self._cut(work)

    def _cut(self, work: Writing) -> None:
        """In a thread: a server that is to end something has to be reached first."""
        self._cut_at, name = time.monotonic(), f"{self._thread.name}-cut"
        threading.Thread(target=self._interrupt, args=(lambda: self.performs is work,), name=name, daemon=True).start()

    def _end(self) -> None:
        """In a thread: nothing that is being performed keeps the one that stops."""
        while not self.join(0.1):
            self._interrupt(lambda: self.performs is not None)

    def _interrupt(self, wanted: Callable[[], bool]) -> None:
        ident = self._thread.ident
        with self._cutting:
            if ident is not None and wanted():
                self._target.interrupt(ident)

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
                if isinstance(self._in[0], Head | Moment | Check):
                    self._between(self._in.popleft())
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

    def _between(self, work: Work | Head | Moment | Check) -> None:
        if isinstance(work, Head):
            self._target.begin()
            self._target.commit((), checked(work.head))
            self._stage.on_loop(work.done)
        elif isinstance(work, Moment):
            taken = capture(self._target)
            self._stage.on_loop(lambda: work.taken(taken))
        elif isinstance(work, Check):
            self._target.begin()
            self._target.rollback()
            self._stage.on_loop(work.done)

    def _batch(self) -> None:
        self._target.begin()
        done: list[Work] = []
        results: list[Completed] = []
        until = time.monotonic() + LONGEST
        while len(done) < MOST and time.monotonic() < until:
            some = self._take(MOST - len(done))
            if not some or self._stopping:
                break
            for work in some:
                completed = self._perform(work, done, results)
                if completed is not None:
                    done.append(work)
                    results.append(completed)
                    self._stage.done(work, completed)
            self._until_noted(len(done))
        self._until_allowed([work for work in done if isinstance(work, Settling)])
        if self._stopping or not done:
            self._target.rollback()
            return
        noted, self._entries, self._noted = self._entries, [], 0
        self._target.commit([checked(note) for note in noted])
        self.commits += 1
        self.batched += sum([work.calls for work in done])
        self._stage.on_loop(lambda: self._safe(done))

    def _perform(self, work: Work, done: Sequence[Work], results: Sequence[Completed]) -> Completed | None:
        """None: it is parked."""
        error: Broken | None = None
        for _ in range(TRIES):
            self._performs(work)
            try:
                if isinstance(work, Writing) and work.halted:
                    error = None  # nothing has happened: there is nothing to take back
                    break
                return self._parts.perform(work)
            except Broken as fault:
                error = fault
            finally:
                self._performs(None)
            if self._stopping or not isinstance(work, Writing):
                raise error
            self._redo(done, results)
            if work.halted or not isinstance(error, Interrupted):
                break
        else:
            assert error is not None
            raise error
        assert isinstance(work, Writing)
        why = None if isinstance(error, Interrupted) else error
        self._stage.on_loop(lambda: self._parked(work, why))
        return None

    def _performs(self, work: Work | None) -> None:
        with self._cutting:
            self.performs = work
            if isinstance(work, Writing):
                work.since = time.monotonic()

    def _redo(self, done: Sequence[Work], results: Sequence[Completed]) -> None:
        """The batch is lost, but for what is performed once more."""
        for attempt in range(TRIES):
            self._target.rollback()
            self._target.begin()
            try:
                for work, completed in zip(done, results, strict=True):
                    self._parts.redo(work, completed)
                return
            except Interrupted:
                if attempt == TRIES - 1 or self._stopping:
                    raise

    def _take(self, most: int) -> list[Work]:
        some: list[Work] = []
        while self._in and len(some) < most and isinstance(self._in[0], Writing | Settling):
            some.append(self._in.popleft())  # type: ignore[arg-type]  # only this thread takes
        return some

    def _until_noted(self, wanted: int) -> None:
        with self._bell:
            self._wanted = wanted
            while self._noted < wanted and not self._stopping:
                self._bell.wait()
            self._wanted = 0

    def _until_allowed(self, settlings: Sequence[Settling]) -> None:
        with self._bell:
            while not all(s.allowed for s in settlings) and not self._stopping:
                self._bell.wait()

    def _give_up(self, error: Exception) -> None:
        """Nothing of the open batch happened, as far as is known: a commit that failed may be in the store, and its
        notes with it."""
        try:
            self._target.rollback()
        except Exception as again:
            log.debug("no rollback: %s", again)
        self._stage.on_loop(lambda: self._failed(error))
