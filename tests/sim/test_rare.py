"""Worlds with more of what is rare: other seeds keep theirs, and faults that those hardly show are caught."""

import pytest

from framework.sim.program import SMALL, Program, Shape, random_shape
from framework.sim.run import Level, Options, run

from .test_transactions import fault
from .tran_mutants import ORDER_MUTANTS, TRAN_MUTANTS

FIRST = 20_000_000


def test_only_seeds_from_there_on_have_more_of_it() -> None:
    assert random_shape(str(FIRST - 1), {"transactions": True}).rare == 0.0
    assert random_shape(str(FIRST), {}).rare == 0.0
    assert random_shape(str(FIRST), {"transactions": True}).rare > 0.0


@pytest.mark.rotating(4)
def test_a_client_that_commits_too_early_is_caught() -> None:
    """In none of 78 worlds from seed 1000 on."""
    seeds = range(FIRST, FIRST + 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*TRAN_MUTANTS["a client commits before all have answered"])
        found = next((seed for seed in seeds if fault(seed, "links")), None)
    assert found is not None
    assert fault(found, "links") == ""


#: Rules of order in transactions that larger worlds do not show to be needed, and a small world that does.
SMALL_WORLDS = {
    "a part that joins held work passes its predecessors": 30_000_024,
    "a part passes those that wait at one replica": 30_000_027,
    "one-way calls leave before the commit": 30_000_031,
    "a commit leaves before all replicas are prepared": 50_000_053,
    "a session does not follow its transaction": 30_000_471,
}


def test_small_worlds_begin_at_a_seed() -> None:
    assert random_shape(str(SMALL - 1), {"transactions": True}).uneven == 0.0
    assert random_shape(str(SMALL), {}).uneven == 0.0
    assert random_shape(str(SMALL), {"transactions": True}).uneven > 0.0


@pytest.mark.parametrize("name", SMALL_WORLDS)
def test_a_rule_of_order_that_is_switched_off_is_caught_in_a_small_world(name: str) -> None:
    options = Options({"transactions": True})
    assert run(SMALL_WORLDS[name], options).verdict.violations == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*ORDER_MUTANTS[name][0])
        assert run(SMALL_WORLDS[name], options).verdict.violations


def test_who_follows_another_client_reads_everywhere() -> None:
    """A session does not tell reads from changes, and a read precedes calls of its own client alone."""
    heard = [Program(str(seed), shape) for seed in range(SMALL, SMALL + 40) if (shape := shape_of(seed)).heard]
    assert heard
    for program in heard:
        acts = [act for i in range(program.shape.clients) for act in program.client(f"c{i + 1}")]
        for part in [part for act in acts for part in act.parts]:
            assert part.replicas == program.by_name[part.object].replicas


def shape_of(seed: int) -> Shape:
    return random_shape(str(seed), {"transactions": True})


def test_small_worlds_without_a_violation() -> None:
    """``obo sim --seeds 30000000:30100000 --transactions`` runs more of them."""
    levels: tuple[Level, ...] = ("links", "all")
    for level in levels:
        for seed in range(SMALL, SMALL + 8):
            assert run(seed, Options({"transactions": True}, level)).verdict.violations == [], f"{level} {seed}"
