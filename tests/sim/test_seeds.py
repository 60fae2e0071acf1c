"""Seeds that once showed a fault: each stays in the tests for good."""

import pytest

from framework.com import order
from framework.com.order import Order
from framework.sim.run import Options, run
from framework.sim.world import Faults
from tests.tiers import worlds

FOUND = [
    (
        548,
        {"oneway": 0.5, "later": 0.3, "conflict": 0.5, "ucast": 0.3, "calls": 12},
        "the response of a call back proved its delivery before its predecessors were delivered",
    ),
    (642, {"back": 0.8, "wide": 0.6, "conflict": 0.5}, "the same, nested"),
    (
        734,
        {"back": 0.8, "wide": 0.6, "conflict": 0.5},
        "a call back was not looked at again when the one before it started",
    ),
    (
        740,
        {"repeat": 0.9, "later": 0.6, "conflict": 0.3, "ucast": 0.0, "calls": 10},
        "the oracle let a read go beyond its instance",
    ),
    (
        500244,
        {
            "nodes": 3, "objects": 3, "levels": 2, "clients": 10, "calls": 5, "back": 1.0, "wide": 0.8,
            "conflict": 1.0, "keys": 1, "oneway": 0.3, "later": 0.4,
        },
        "a call back was not looked at again when its predecessor had started but was not settled",
    ),
    (
        7097,
        {"oneway": 0.5, "later": 0.3, "conflict": 0.5, "ucast": 0.3, "calls": 12, "cancel": 0.0},
        "one part of a pcast stood for the other part of another, with which it does not conflict",
    ),
    (
        7075,
        {
            "ucast": 0.3, "oneway": 0.4, "conflict": 0.5, "objects": 2, "levels": 2, "wide": 0.5, "calls": 14,
            "clients": 6, "keys": 2, "nodes": 4, "back": 0.5, "cancel": 0.0,
        },
        "the same, in a world of calls back",
    ),
]  # fmt: skip

HEAVY = Faults(loss=0.4, duplication=0.5, reorder=True, cuts=4, pauses=4, slow=2)
FOUND_UNDER_HEAVY_FAULTS = [
    (
        100013,
        {"repeat": 1.0, "later": 0.0, "oneway": 0.2},
        "a client that repeated calls at other nodes lost what it had sent from its session",
    ),
]


@pytest.mark.parametrize(("seed", "shape", "what"), FOUND, ids=[f"{seed}: {what}" for seed, _, what in FOUND])
def test_a_fault_that_was_found_stays_away(seed: int, shape: dict[str, object], what: str) -> None:
    assert run(seed, Options(shape=shape)).verdict.violations == []


@pytest.mark.parametrize(
    ("seed", "shape", "what"),
    FOUND_UNDER_HEAVY_FAULTS,
    ids=[f"{seed}: {what}" for seed, _, what in FOUND_UNDER_HEAVY_FAULTS],
)
def test_a_fault_that_was_found_under_heavy_faults(
    seed: int, shape: dict[str, object], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framework.sim.run.random_faults", lambda seed, level: HEAVY)
    assert run(seed, Options(shape=shape)).verdict.violations == []


@pytest.mark.parametrize("seeds", worlds(60, 500))
def test_many_seeds_without_a_violation(seeds: range) -> None:
    """``make sim`` runs more of them."""
    for seed in seeds:
        assert run(seed).verdict.violations == [], f"obo sim --seed {seed}"


FOUND_WHERE_THE_GROUP_CHANGES = [
    (26, "two replicas began with a state of their own, because one took its state while the next view was decided"),
    (33, "a request of a departed origin was taken for one to the new life of a replica"),
    (34, "a call was refused at one replica of the caller, and waited for at the other"),
    (39, "the order of an object that had lost its state was compared with the one from before"),
    (47, "what a void request stood for was forgotten with it"),
    (65, "an instance waited for a replica whose state waited for the instance to end"),
    (75, "a request that the flush brought was taken for delivered"),
    (81, "a call that lost its destination was given up before a call back, at one replica, and after it at another"),
    (87, "a read was sent again to replicas it was not meant for"),
    (125, "a replica that never had a state was waited for"),
    (194, "marks of a life that has ended were refused"),
    (294, "two nodes that had suspected each other were frozen for good"),
    (310, "an old state was taken up while the newer one was only away"),
    (317, "a call was given up though a replica that joins could still answer"),
    (434, "a state was ahead of a request that went only to the replica that took it"),
    (2444, "a life that had just begun took requests of an earlier one for delivered"),
    (1600, "who had decided a view crashed, and the one it had admitted could not tell the others"),
    (575, "a request that was agreed got a predecessor with a higher stamp"),
    (1115, "a request that needs no agreement did not wait for what a void one stood for"),
    (731, "a call was refused at one replica of the caller, and made at another when its destination was back"),
    (1486, "the same, with an asynchronous call"),
    (1962, "the oracle took a state that was given for one that had come"),
    (2295, "the same, of a durable object"),
    (9200148, "what took the place of a void request counted as alike, which it is at one destination only"),
    (5110112, "the oracle took a node that had crashed for one that stays (A9)"),
    (9301891, "the oracle did not let a call wait for what its caller's caller had read (A9)"),
    (2888, "the oracle took a read that was repeated for the one in an act that had changed another object before"),
]


@pytest.mark.parametrize(("seed", "what"), FOUND_WHERE_THE_GROUP_CHANGES, ids=lambda v: str(v))
def test_a_fault_of_the_group_stays_away(seed: int, what: str) -> None:
    assert run(seed, Options(faults="all")).verdict.violations == []


@pytest.mark.parametrize("seeds", worlds(10, 80))
def test_worlds_whose_group_changes(seeds: range) -> None:
    """``obo sim --seeds 0:3000 --faults all`` runs more of them."""
    for seed in seeds:
        assert run(seed, Options(faults="all")).verdict.violations == [], f"seed {seed}"


def test_who_catches_up_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Much waits in no world here for the state of a joiner; but it is to start bit by bit, and in the order."""
    monkeypatch.setattr(order, "AT_ONCE", 1)
    behind, catch_up = 0, Order.catch_up

    def counted(self: Order) -> None:
        nonlocal behind
        behind += 1
        catch_up(self)

    monkeypatch.setattr(Order, "catch_up", counted)
    for seed in range(15):
        assert run(seed, Options(faults="all")).verdict.violations == [], f"seed {seed}"
    assert behind > 15
