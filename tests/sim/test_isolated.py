"""T3 looks at calls that do the same together. It finds a circle exactly where one finds it who looks at all pairs."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from framework.footprint import READ, WRITE, Footprint
from framework.sim import oracle_tran
from framework.sim.oracle_tran import cycle
from framework.sim.verdict import Place
from framework.trace.record import Placed

CONFLICTS = (("put", "put"), ("put", "get"), ("put", "add"), ("add", "get"))


def done(tran: str, footprint: Footprint) -> Any:
    return SimpleNamespace(tran=tran, footprint=footprint, ended=SimpleNamespace(committed=True))


def made(seed: int) -> list[Place]:
    """Some replicas, each with calls of a few transactions in an order of its own."""
    chance = Random(seed)
    trans = [f"c/{n}" for n in range(chance.randint(2, 6))]
    out = []
    for at in range(chance.randint(1, 3)):
        place = Place(f"o{at}@n1", ("n1", 1), Placed((f"o{at}@n1",), CONFLICTS), True)
        for _ in range(chance.randint(2, 7)):
            method = chance.choice(["put", "get", "add"])
            keys = None if chance.random() < 0.1 else ((chance.choice("xyz"), READ if method == "get" else WRITE),)
            place.performed.append(done(chance.choice(trans), Footprint(method, keys, method == "get")))
        out.append(place)
    return out


def all_pairs(place: Place, after: dict[str, dict[str, str]]) -> None:
    for n, later in enumerate(place.performed):
        for earlier in place.performed[:n]:
            if earlier.tran != later.tran and place.conflict(earlier.footprint, later.footprint):
                after.setdefault(earlier.tran, {}).setdefault(later.tran, place.name)


def test_it_finds_what_all_pairs_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_tran, "_is_lone", lambda run, place, instance: False)
    circles = 0
    for seed in range(400):
        slow: dict[str, dict[str, str]] = {}
        quick: dict[str, dict[str, str]] = {}
        for place in made(seed):
            all_pairs(place, slow)
            oracle_tran._conflicts(SimpleNamespace(), place, quick)  # type: ignore[arg-type]
        assert bool(cycle(quick)) == bool(cycle(slow)), seed
        circles += bool(cycle(slow))
    assert 40 < circles < 360, "worlds of both kinds"


def test_what_was_adopted_was_looked_at_where_it_was_performed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_tran, "_is_lone", lambda run, place, instance: False)
    for seed in range(100):
        [donor, *_] = made(seed)
        joined = Place("o0@n2", ("n2", 3), Placed(("o0@n2",), CONFLICTS), True)
        joined.performed, joined.adopted = list(donor.performed), len(donor.performed)
        joined.performed.append(done("c/0", Footprint("put", None)))
        one: dict[str, dict[str, str]] = {}
        both: dict[str, dict[str, str]] = {}
        all_pairs(joined, one)
        for place in (donor, joined):
            oracle_tran._conflicts(SimpleNamespace(), place, both)  # type: ignore[arg-type]
        assert bool(cycle(both)) == bool(cycle(one)), seed
