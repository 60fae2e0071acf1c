"""Each fault does what it says, to all frames that it is meant for and to no others; chance comes from the seed."""

from random import Random

import pytest

from framework.sim.faults import Arrivals, Cut, Delay, Duplication, Fifo, Loss, Slow, Wire
from framework.sim.run import build
from framework.sim.world import Faults, World


class Straight:
    """A wire that takes one unit of time."""

    def carry(self, data: bytes, now: float) -> Arrivals:
        return [(now + 1.0, data)]


class Backwards:
    """Each frame overtakes the ones before it."""

    def __init__(self) -> None:
        self.time = 100.0

    def carry(self, data: bytes, now: float) -> Arrivals:
        self.time -= 1.0
        return [(self.time, data)]


def frames(count: int) -> list[bytes]:
    return [str(i).encode() for i in range(count)]


def carried(wire: Wire, count: int, step: float = 1.0) -> list[Arrivals]:
    return [wire.carry(data, i * step) for i, data in enumerate(frames(count))]


def test_delay_is_within_its_bounds_and_frames_overtake_each_other() -> None:
    out = [a for arrivals in carried(Delay(Random(1), 2.0, 8.0), 200, 0.1) for a in arrivals]
    assert [data for _, data in out] == frames(200)
    assert all(2.0 <= at - i * 0.1 <= 8.0 for i, (at, _) in enumerate(out))
    assert [at for at, _ in out] != sorted(at for at, _ in out)


def test_fifo_keeps_the_order_and_is_never_early() -> None:
    out = [a for arrivals in carried(Fifo(Delay(Random(1), 2.0, 8.0)), 200, 0.1) for a in arrivals]
    times = [at for at, _ in out]
    assert times == sorted(times)
    assert len(set(times)) == 200
    assert all(at >= i * 0.1 + 2.0 for i, at in enumerate(times))
    back = [a for arrivals in carried(Fifo(Backwards()), 50) for a in arrivals]
    assert [data for _, data in sorted(back)] == frames(50)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_loss_loses_its_share(share: float) -> None:
    out = carried(Loss(Straight(), Random(1), share), 2000)
    lost = sum(not arrivals for arrivals in out)
    assert abs(lost - share * 2000) < 100
    assert all(arrivals in ([], [(i + 1.0, frames(2000)[i])]) for i, arrivals in enumerate(out[:100]))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_duplication_repeats_its_share(share: float) -> None:
    out = carried(Duplication(Straight(), Random(1), share), 2000)
    twice = sum(len(arrivals) == 2 for arrivals in out)
    assert abs(twice - share * 2000) < 100
    assert all(len(arrivals) in (1, 2) and len({d for _, d in arrivals}) == 1 for arrivals in out)


def test_a_duplicate_takes_its_own_time() -> None:
    (first, second) = Duplication(Delay(Random(1), 1.0, 9.0), Random(1), 1.0).carry(b"x", 0.0)
    assert first[0] != second[0]


def test_slow_is_late_between_two_times_only() -> None:
    out = carried(Slow(Straight(), 3.0, 6.0, 80.0), 10)
    assert [arrivals[0][0] - i for i, arrivals in enumerate(out)] == [1.0] * 3 + [81.0] * 3 + [1.0] * 4


def test_a_cut_takes_what_is_sent_and_what_is_on_its_way() -> None:
    wire = Cut(Slow(Straight(), 0.0, 1e9, 1.5), 5.0, 8.0)  # each frame takes 2.5
    through = [i for i, arrivals in enumerate(carried(wire, 12)) if arrivals]
    assert through == [0, 1, 2, 8, 9, 10, 11]


def test_wrappers_compose() -> None:
    wire = Loss(Duplication(Fifo(Delay(Random(1), 1.0, 5.0)), Random(2), 0.5), Random(3), 0.5)
    counts = [len(arrivals) for arrivals in carried(wire, 500)]
    assert set(counts) == {0, 1, 2}


@pytest.mark.parametrize("make", [
    lambda r: Delay(r, 1.0, 9.0),
    lambda r: Loss(Straight(), r, 0.5),
    lambda r: Duplication(Straight(), r, 0.5),
], ids=["delay", "loss", "duplication"])  # fmt: skip
def test_one_seed_one_fate(make) -> None:
    assert carried(make(Random(5)), 50) == carried(make(Random(5)), 50)
    assert carried(make(Random(5)), 50) != carried(make(Random(6)), 50)


# faults of a world


def world(faults: Faults, seed: str = "7") -> World:
    return World(seed, ["n1", "n2", "n3"], [], faults)


def fates(a_world: World) -> list[Arrivals]:
    return [w.carry(b"x", float(now)) for w in a_world._wires.values() for now in range(0, 300, 3)]


def test_a_world_without_faults_loses_and_repeats_nothing() -> None:
    assert {len(arrivals) for arrivals in fates(world(Faults()))} == {1}


def test_each_fault_shows_in_a_world() -> None:
    assert any(not a for a in fates(world(Faults(loss=0.2))))
    assert any(len(a) == 2 for a in fates(world(Faults(duplication=0.2))))
    assert any(not a for a in fates(world(Faults(cuts=2))))
    assert (
        max(a[0][0] - now for a, now in zip(fates(world(Faults(slow=2))), list(range(0, 300, 3)) * 6, strict=True)) > 80
    )


def test_adding_a_fault_does_not_shift_the_others() -> None:
    """A new source of chance for each wire and fault: a run stays comparable when one is switched on."""
    plain, late = fates(world(Faults(reorder=True))), fates(world(Faults(reorder=True, slow=1)))
    shifts = {round(b[0][0] - a[0][0], 6) for a, b in zip(plain, late, strict=True)}
    assert shifts == {0.0, 80.0}


def test_what_has_a_beginning_and_an_end_is_told() -> None:
    story = world(Faults(cuts=2, slow=1, pauses=2)).story
    assert len(story) == 5
    assert sum("cut from each other" in text for _, _, text in story) == 2
    assert sum("stands still" in text for _, _, text in story) == 2
    assert sum("are late" in text for _, _, text in story) == 1
    assert all(start < end <= 400.0 for start, end, _ in story)


def test_a_node_that_stands_still_does_nothing_meanwhile() -> None:
    a_world = build(11)
    a_world.pause(next(iter(a_world.nodes)), 20.0, 200.0)
    a_world.run()
    name = next(iter(a_world.nodes))
    others = [r.at for n, node in a_world.nodes.items() if n != name for r in node.trace.records]
    mine = [r.at for r in a_world.nodes[name].trace.records]
    assert not [at for at in mine if 20.0 < at < 200.0]
    assert [at for at in others if 20.0 < at < 200.0]
    assert [at for at in mine if at >= 200.0]
