"""Worlds with transactions: those that once showed a fault stay in the tests for good."""

import pytest

from framework.com import tran_host
from framework.errors import OboError
from framework.sim.run import Level, Options, run
from tests.tiers import only_full

FOUND: list[tuple[int, Level, str]] = [
    (11, "none", "a client committed what had not been answered by all objects"),
    (13, "none", "the same: and the outcome that waited for it kept another one from being delivered"),
    (120, "links", "an abort waited for what it decides on"),
    (214, "links", "a one-way pcast has one order on each object, not over both: it is no transaction"),
    (280, "links", "two outcomes that came together were applied the later one first"),
    (4, "all", "what was held was in the replies of a state that was kept"),
    (90, "all", "a client committed though a call had no answer, because its home was lost"),
    (121, "all", "two transactions waited for each other"),
    (167, "all", "who passed a request also passed what that stood for"),
    (292, "all", "a request of an aborted transaction kept its place at one replica, and not at another"),
    (35, "all", "an outcome waited for a state that could not be given because of what it decides on"),
    (61, "all", "a call passed one of its own caller's, which did not wait for its transaction"),
    (114, "all", "the same: two calls of one instance in a row, the first one-way"),
    (258, "all", "the same: two calls of one client"),
    (340, "all", "the oracle wanted an outcome of a root without parts, but for some that were lost"),
    (402, "all", "what was decided while the view changed went to the old life of a node"),
    (489, "all", "the oracle took an outcome from before all nodes were lost for one of now"),
    (1760, "all", "a state was given to a life that was over, while the view without it was being installed"),
    (1609, "all", "the oracle took the abort of a part for its vote"),
    (1621, "all", "the oracle let what was passed over learn from those it would have conflicted with"),
    (1246, "all", "a client that had lost its home committed elsewhere what had not been answered by all objects"),
    (162, "all", "a commit did not wait for a part that an independent call stood for"),
    (1020, "all", "the oracle took a vote for something that the answer before it tells of"),
    (1161, "all", "the oracle judged the isolation of a method that read one replica by what it called"),
    (1273, "all", "the oracle gave a place to a part that was undone alone"),
    (1577, "all", "a call passed one that waited for its transaction at one replica only, through a predecessor"),
    (1808, "all", "the oracle judged isolation by a read that nobody was told of"),
    (9401592, "links", "a part passed a predecessor that did not wait for its transaction everywhere"),
    (9202092, "all", "the same, with faults"),
    (9410377, "links", "a part that had passed a predecessor stood for it in contexts, and was not settled"),
    (9203212, "all", "the same, with faults"),
    (9400963, "links", "a predecessor that had started was taken for one that was settled"),
    (9620182, "all", "a read at one replica made a part pass others there, and nowhere else: states differed"),
    (9630270, "all", "a request that arrived after the abort of its transaction left the queue without a word"),
    (9412223, "links", "a reply that followed the commit did not name the one-way calls which left with that"),
]

FOUND_AS_DRAWN: list[tuple[int, Level, str]] = [
    (9201798, "all", "a vote and the outcome of a part that was performed again had one invocation id"),
    (9203522, "all", "the same"),
    (5110112, "all", "the oracle took a node that had crashed for one that stays (A9)"),
    (9201016, "all", "the same"),
    (500043, "all", "the oracle did not let a call wait for an outcome at a node whose tran had no state yet (A9)"),
    (9701550, "all", "a disk of the world remembered that a read which it did not have had been performed (A1)"),
]


def fault(seed: int, level: Level, lasting: bool = False) -> str:
    """What is wrong with the run of this seed; empty if nothing is. ``lasting``: objects may be durable."""
    try:
        violations = run(seed, Options({"transactions": True, "lasting": lasting}, level)).verdict.violations
    except (OboError, AssertionError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return str(violations[0]) if violations else ""


@pytest.mark.parametrize(("seed", "level", "what"), FOUND, ids=[f"{seed}: {what}" for seed, _, what in FOUND])
def test_a_fault_that_was_found_stays_away(seed: int, level: Level, what: str) -> None:
    assert fault(seed, level) == ""


@pytest.mark.parametrize(("seed", "level", "what"), FOUND_AS_DRAWN, ids=lambda v: str(v))
def test_a_fault_that_was_found_where_objects_may_be_durable(seed: int, level: Level, what: str) -> None:
    """As ``obo sim --transactions`` runs the seed."""
    assert run(seed, Options({"transactions": True}, level)).verdict.violations == []


@pytest.mark.parametrize("seed", [1000, 1003, *[only_full(seed) for seed in range(1004, 1024)]])
def test_outcomes_of_which_a_bit_is_left(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """As after 10,000 others: what still asks for an outcome, or comes late, is told the same."""
    monkeypatch.setattr(tran_host, "BOUND", 0)
    assert fault(seed, "all") == ""


def test_both_outcomes_happen() -> None:
    """Worlds in which everything is aborted, or nothing, would prove little."""
    done = run(0, Options({"transactions": True, "lasting": False}, "links"))
    methods = [
        r.footprint.method
        for t in done.traces
        for r in t.records
        if r.event == "deliver" and r.replica.startswith("tran@") and r.footprint is not None
    ]
    assert methods.count("commit") > 5
    assert methods.count("abort") > 1


def test_where_the_parts_decide_both_outcomes_happen() -> None:
    """Distributed control: votes that make a commit, and votes that come to nothing."""
    made = run(1008, Options({"transactions": True, "lasting": False}, "all"))
    parts, votes, aborted = {}, {}, set()
    for r in [r for t in made.traces for r in t.records]:
        if r.event == "send" and r.tran:
            parts.setdefault(r.tran, set()).update(name for name, _ in r.parts)
        elif r.event == "deliver" and r.replica.startswith("tran@") and r.footprint is not None:
            name = r.footprint.keys[0][0]
            if r.footprint.method == "vote":
                votes.setdefault((r.replica, name), set()).add(r.invocation)
            elif r.footprint.method == "abort":
                aborted.add(name)
    whole = {name for (_, name), cast in votes.items() if len(cast) == len(parts[name])}
    assert len(whole - aborted) > 2
    assert {name for _, name in votes} - whole
