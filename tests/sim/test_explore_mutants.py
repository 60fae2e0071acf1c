"""Proof that the explorer finds a fault: rules are switched off, and a search that ends at the same place each time
notices. It runs before with all rules on, in test_explore.py or here."""

import pytest

from framework.com.words import decode
from framework.sim.explore.judge import Judge
from framework.sim.explore.machine import Choice, Machine
from framework.sim.explore.scenario import load
from framework.sim.explore.search import Report, explore, strategy

from .explore_mutants import EXPLORE_MUTANTS
from .member_mutants import MEMBER_MUTANTS
from .mutants import MUTANTS, Mutant
from .tran_mutants import TRAN_MUTANTS

ALL: dict[str, Mutant] = {**MUTANTS, **MEMBER_MUTANTS, **TRAN_MUTANTS, **EXPLORE_MUTANTS}

#: Where each is found: scenario, strategy, and schedules that pct may try.
WHERE: dict[str, tuple[str, str, int]] = {
    "what was accepted in an earlier ballot is ignored": ("paxos", "dfs", 0),
    "the lowest ballot that was accepted wins": ("paxos-again", "pct:8", 600),
    "anybody decides alone": ("paxos", "dfs", 0),
    "proposals of the departed are not shared": ("crash", "pct:3", 100),
    "requests of the departed are not shared": ("crash-origin", "pct:3", 100),
    "who is left out is listened to until the end": ("crash-origin", "pct:3", 200),
    "a client's answers are forgotten one too early": ("moves", "dfs", 0),
    "the context does not go with the state": ("joining", "delay:2", 0),
    "the clock does not go with the state": ("joining-late", "delay:1", 0),
    "a commit may wait for itself": ("behind", "delay:1", 0),
    "outcomes are forgotten early": ("veto", "pct:3", 60),
    "what is held stays when the transaction is aborted": ("veto", "pct:3", 60),
    "what a callee did that failed stays": ("torn", "pct:3", 60),
    "what is held keeps nobody out": ("transaction", "dfs", 0),
    "outcomes have no order": ("veto", "pct:3", 60),
    "nobody gives way, and nobody aborts for others": ("dead", "pct:4", 60),
    "no promise": ("joins", "pct:3", 200),
    "no agreement": ("two-of-two", "dfs", 0),
    "conflicting requests not in stamp order": ("chain", "pct:3", 60),
    "no ready condition": ("call-back", "dfs", 0),
    "keys of an index slot forgotten": ("two-of-two", "dfs", 0),
    "an abort is answered as if it had committed": ("lost", "pct:3", 60),
    "performed again when a copy arrives": ("call-back", "dfs", 0),
    "waiting copies are performed, too": ("nested", "dfs", 0),
    "conflict opens no epoch": ("two-of-two", "dfs", 0),
    "no context wait before proposing": ("chain", "pct:3", 60),
    "proposed counts as ordered whatever the destinations": ("chain-apart", "pct:3", 60),
    "stamp not above conflicting requests": ("together", "pct:3", 150),
    "sending leaves nothing in the context": ("chain", "pct:3", 60),
    "the request's context is not inherited": ("chain", "pct:3", 60),
    "commit leaves nothing": ("chain-apart", "pct:3", 60),
    "a new epoch forgets the one before": ("chain-apart", "pct:3", 60),
    "clock never merged": ("chain", "pct:3", 60),
    "nothing is sent again": ("loss", "pct:3", 60),
    "no joining of an ancestor": ("call-back", "dfs", 0),
}


def searched(name: str) -> Report:
    scenario, how, limit = WHERE[name]
    return explore(Machine(load(scenario)), strategy(how), 600.0, limit=limit or None)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("name", WHERE)
def test_a_rule_that_is_switched_off_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*ALL[name])
    assert searched(name).findings, f"{name}: nothing found by {WHERE[name]}"


def _searches() -> list[str]:
    """One rule for each search, the longest one."""
    found = {WHERE[name][:2]: name for name in sorted(WHERE, key=lambda name: WHERE[name][2])}
    return sorted(found.values())


@pytest.mark.full
@pytest.mark.parametrize("name", _searches())
def test_with_all_rules_on_the_same_searches_find_nothing(name: str) -> None:
    assert searched(name).findings == []


def state_that_comes_late() -> list[str]:
    """What is wrong at the end of one schedule of ``too-late``: n4 has promised for the view without n2 when the state
    that n2 had given it arrives."""
    machine = Machine(load("too-late"))
    state = machine.initial

    def word(choice: Choice) -> str:
        if choice.event[0] != "takes":
            return ""
        item = machine.real(choice.event)[2]
        return type(decode(item[1], choice.event[1])).__name__

    def happens(*event: str, node: str = "", what: str = "") -> bool:
        nonlocal state
        for choice in machine.choices(state):
            here = node in ("", machine.nodes[choice.node]) and what in ("", word(choice))
            if here and choice.event[: len(event)] == event:
                state = machine.next(state, choice)
                return True
        return False

    def all_arrive(what: str = "") -> None:
        while happens("takes", what=what):
            pass

    happens("client", "a")
    for node in ("n3", "n4"):
        happens("returns", node=node)
        happens("ticks", node=node)
    all_arrive()
    happens("ticks", node="n1")
    all_arrive()
    assert happens("gets", "n4", node="n2"), "n4 is a member, and asks for the state"
    happens("evicts", node="n1")
    happens("ticks", node="n1")
    all_arrive("Prepare")
    all_arrive("Promise")
    assert happens("gets", "n2", node="n4"), "the state is here"
    all_arrive()
    judge = Judge(machine, most=2)
    judge.look(state, list)
    return [str(violation) for finding in judge.findings for violation in finding.violations]


def test_a_state_that_comes_while_the_view_changes_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_that_comes_late() == []
    monkeypatch.setattr(*ALL["the state is taken while the view changes"])
    assert state_that_comes_late() == [
        "A7: f@n3#2 began with nothing in view 2, and f@n4#2 has the state from the beginning"
    ]
