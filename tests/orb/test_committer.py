"""The thread of a backed replica, where a call is ended in the middle: the batch is lost with it, and made again."""

import threading
import time
from types import SimpleNamespace

from framework import Interrupted
from framework.com.events import Completed
from framework.orb.backed.committer import Committer
from framework.orb.backed.writing import Writing

WAIT = 60.0


class Store:
    """What is in the open batch, and what was committed; keys are given away for good, as by a sequence."""

    def __init__(self):
        self.batch, self.committed, self.key, self.written, self.log = [], [], 0, 0, []

    def begin(self):
        self.batch = []

    def commit(self, entries, head=None):
        self.committed += self.batch
        self.written = self.key

    def rollback(self):
        self.batch, self.key = [], self.written
        self.log.append("rollback")

    def interrupt(self, thread):
        self.cut.set()


class Made(Writing):
    """Puts its name and a key into the store; "fails" takes a key as well, and "ends never" waits to be ended."""

    def __init__(self, store, name, tran=None):
        self.store, self.name = store, name
        self.effect = SimpleNamespace(tran=tran, sid=name, request=SimpleNamespace(invocation=name))
        self.method = SimpleNamespace(where=name)
        self.cancelled, self.changes, self.order, self._body, self._chance = False, True, 0, b"", None

    def _performed(self):
        self.store.key += 1
        self.store.log.append(self.name)
        if self.name == "ends never":
            assert self.store.cut.wait(WAIT), "nobody ends it"
            raise Interrupted("ended")
        if self.name != "fails":
            self.store.batch.append((self.name, self.store.key))
        return Completed(self.name, self.name != "fails", b"%d" % self.store.key, safe=False)


def performed(*names):
    """What is committed when all are noted; "ends never" is ended, and fails then. And the log of the store."""
    store, parked, safe = Store(), threading.Event(), []
    store.cut = threading.Event()
    works = [Made(store, name) for name in names]
    gate = threading.Event()

    class Stage:
        stopped = False

        def done(self, work, completed):
            threading.Thread(target=lambda: gate.wait(WAIT) and committer.note(b"note")).start()

        def on_loop(self, act):
            act()

    def again(work, fault):
        assert fault is None and work.halted
        parked.set()
        work.fail(0, b"ended")
        work.halted = False
        committer.enter(work)

    committer = Committer("test", store, Stage(), safe.extend, lambda error: store.log.append(error), again)
    with committer._bell:  # all come together
        for work in works:
            committer.enter(work)
    gate.set()
    never = next(work for work in works if work.name == "ends never")
    until = time.monotonic() + WAIT
    while committer.performs is not never:
        assert time.monotonic() < until, "it is not begun"
    committer.halt(never)
    assert parked.wait(WAIT)
    while len(safe) < len(works):
        assert time.monotonic() < until, f"{safe} of {names} are committed; {store.log}"
        time.sleep(0.01)
    committer.stop()
    assert committer.join(WAIT)
    return store


def test_what_was_performed_in_the_same_batch_is_performed_again_with_the_same_keys():
    """Also what has failed: it has taken a key, and other replicas, which have lost no batch, know that."""
    store = performed("one", "fails", "two", "ends never", "three")
    assert store.committed == [("one", 1), ("two", 3), ("three", 4)]
    assert store.log.count("fails") == store.log.count("one") == 2 and store.log.count("three") == 1


def test_one_that_is_ended_alone():
    assert performed("ends never", "one").committed == [("one", 1)]
