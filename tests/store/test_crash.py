"""A crash at any moment: what is found is a beginning of what was written, with all that was confirmed.

The state of the replica is the list of its records; a snapshot has one chunk for each.
"""

import errno
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from framework.ids import Node, Replica
from framework.store import Store, StoreFailed, segments
from framework.store.journal import Journal
from tests.store.lossy import Crash, LossyDisk
from tests.tiers import examples

N1, BANK = Node("n1"), Replica("bank@n1")
State = list[bytes]


def state_of(journal: Journal) -> State:
    loaded = journal.load()
    state = list(loaded.snapshot or [])
    for position, (at, record) in enumerate(loaded.records, loaded.base + 1):
        assert at == position
        state.append(record)
    return state


class Life:
    """A store on a disk that can crash, and what must be found in it."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="obo-store-"))
        self.lives = self.written = 0
        #: The states that may be found, by the position of their last record.
        self.states: dict[int, list[State]] = {0: [[]]}
        self.confirmed = 0
        (self.home / "0").mkdir()
        self.start(LossyDisk(self.home / "0"))

    def start(self, disk: LossyDisk) -> None:
        self.disk = disk
        self.store = Store(disk.root, N1, disk=disk, threads=False, segment_bytes=200)
        self.journal = self.store.journal(BANK)
        self.check()

    def check(self) -> None:
        position, state = self.journal.last, state_of(self.journal)
        assert position >= self.confirmed, f"{self.confirmed} was confirmed, {position} is there"
        assert state in self.states[position]
        self.states = {position: [state]}
        self.confirmed = self.journal.durable
        assert self.confirmed == position, "it is safe once it was found"

    @property
    def state(self) -> State:
        """By now, in memory."""
        return self.states[self.journal.last][-1]

    def append(self, count: int) -> None:
        for _ in range(count):
            self.written += 1
            state = [*self.state, b"%d" % self.written * (self.written % 7 + 1)]
            self.states[self.journal.append(state[-1])] = [state]

    def commit(self) -> None:
        self.store.writer.round()
        self.confirmed = self.journal.durable

    def checkpoint(self, back: int = 0) -> None:
        self.commit()
        position = max(self.journal.base, self.journal.durable - back)
        state = self.states.get(position)
        if state is not None:
            self.journal.checkpoint_now(iter(state[-1]), position)

    def adopt(self) -> None:
        """State from elsewhere, records on top of it, while it is not yet in place. Some before it are on the way."""
        self.append(1)
        position = self.journal.hold()
        self.written += 1
        state = [b"from-elsewhere-%d" % self.written]
        self.states[position] = [*self.states[position], state]
        self.append(2)
        self.commit()
        assert self.confirmed == position
        self.journal.adopt_now(iter(state), position)
        self.states[position] = [state]
        self.commit()
        assert self.confirmed == position + 2, self.journal.failure

    def again(self) -> None:
        """Opened again, with a torn end."""
        self.commit()
        self.store.close()
        for path in segments.paths_in(self.store.directory / "replicas" / BANK)[-1:]:
            self.disk.tear(path, b"\xf1rec and then nothing")
        self.start(self.disk)

    def crash(self, power_loss: bool, seed: int) -> None:
        self.store.close()
        self.lives += 1
        target = self.home / str(self.lives)
        self.start(self.disk.after_power_loss(target, Random(seed)) if power_loss else self.disk.after_kill())

    def end(self) -> None:
        self.store.close()
        shutil.rmtree(self.home)


DEEDS: dict[str, Callable[[Life], None]] = {
    "commit": Life.commit,
    "checkpoint": Life.checkpoint,
    "older checkpoint": lambda life: life.checkpoint(back=3),
    "adopt": Life.adopt,
    "again": Life.again,
}
deeds = st.sampled_from(sorted(DEEDS))
seeds = st.integers(0, 2**32)


class Crashes(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.life = Life()

    @rule(count=st.integers(1, 6))
    def append(self, count: int) -> None:
        self.life.append(count)

    @rule(deed=deeds)
    def do(self, deed: str) -> None:
        DEEDS[deed](self.life)

    @rule(power_loss=st.booleans(), seed=seeds)
    def crash(self, power_loss: bool, seed: int) -> None:
        self.life.crash(power_loss, seed)

    @rule(deed=deeds, after=st.integers(1, 25), power_loss=st.booleans(), seed=seeds)
    def crash_while(self, deed: str, after: int, power_loss: bool, seed: int) -> None:
        crash_while(self.life, deed, after, power_loss, seed)

    @rule(deed=deeds, after=st.integers(1, 25), code=st.sampled_from([errno.ENOSPC, errno.EIO]))
    def fail_while(self, deed: str, after: int, code: int) -> None:
        fail_while(self.life, deed, after, code)

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()


def crash_while(life: Life, deed: str, after: int, power_loss: bool, seed: int) -> bool:
    """False if the deed was done before the crash."""
    life.disk.die_at = life.disk.calls + after
    try:
        DEEDS[deed](life)
        done = True
    except Crash:
        done = False
    life.crash(power_loss, seed)
    return not done


def fail_while(life: Life, deed: str, after: int, code: int) -> bool:
    """False if the deed was done before the disk failed. What fails can be opened again, and has all confirmed."""
    disk = life.disk
    disk.error, disk.fail_at = OSError(code, "the disk says no"), disk.calls + after
    try:
        DEEDS[deed](life)
    except StoreFailed:
        pass
    except AssertionError:  # the deed sees that nothing was confirmed
        if not life.journal.failure:
            raise
    failed = disk.calls >= disk.fail_at
    disk.fail_at = 0
    if "not on disk" in life.journal.failure:
        with pytest.raises(StoreFailed, match="not on disk"):
            life.journal.append(b"more")
        life.journal = life.store.journal(BANK)
        life.check()
    else:
        life.crash(False, 0)
    return failed


TestCrashes = Crashes.TestCase
TestCrashes.settings = settings(derandomize=True, max_examples=examples(25, 100), stateful_step_count=15, deadline=None)


@pytest.mark.parametrize("deed", sorted(DEEDS))
@pytest.mark.parametrize("power_loss", [False, True])
def test_a_crash_between_any_two_calls_loses_nothing(deed: str, power_loss: bool) -> None:
    """Also when what was found is soon lost again."""
    for after in range(1, 200):
        life = Life()
        for _ in range(3):
            life.append(4)
            life.commit()
        life.checkpoint(back=2)
        life.append(5)
        crashed = crash_while(life, deed, after, power_loss, seed=after)
        life.crash(True, seed=after)  # what was found once must be found again
        life.append(2)
        life.commit()
        life.crash(True, seed=after)
        life.end()
        if not crashed:
            assert after > 2, "there was nothing to crash"
            return
    raise AssertionError("the deed never ends")


@pytest.mark.parametrize("deed", sorted(DEEDS))
def test_a_refusal_of_any_call_is_told_and_loses_nothing(deed: str) -> None:
    """Power is lost some time after it."""
    for after in range(1, 200):
        life = Life()
        life.append(9)
        life.commit()
        life.append(5)
        failed = fail_while(life, deed, after, errno.ENOSPC)
        life.append(2)
        life.commit()
        life.crash(False, 0)
        life.crash(True, seed=after)
        life.end()
        if not failed:
            return
    raise AssertionError("the deed never ends")
