"""A world with a violation, made small: what is left of it fails alike, and is clean where the rule is on."""

from pathlib import Path
from typing import Any

import pytest

from framework.errors import BadRequest
from framework.sim.run import Level, Options, run
from framework.sim.shrink import VERSION, Shrinking, attempt, of_replay, read, write

from .tran_mutants import TRAN_MUTANTS

#: A mutant, and a seed that shows it.
SHOWN: list[tuple[str, int, Level]] = [
    ("what is held stays when the transaction is aborted", 1, "links"),
    ("what is held keeps nobody out", 0, "links"),
    ("one vote is enough", 1007, "links"),
    ("what is held stays when the transaction is aborted", 1000, "all"),
]


def mutate(name: str, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(*TRAN_MUTANTS[name])


@pytest.mark.parametrize(("name", "seed", "level"), SHOWN)
def test_a_mutant_is_shown_by_a_small_world(name: str, seed: int, level: Level, tmp_path: Path) -> None:
    options, file = Options({"transactions": True, "lasting": False}, level), tmp_path / "small.json"
    with pytest.MonkeyPatch.context() as patch:
        mutate(name, patch)
        shrinking = Shrinking(seed, options)
        shrinking.run()
        first, best = shrinking.first, shrinking.best
        assert shrinking.rule in best.broken
        assert best.records < first.records / 3
        assert len(best.left) < len(first.left) / 2
        write(file, shrinking.replay())
        assert attempt(seed, of_replay(read(file))) == best  # the same verdict, byte for byte the same trace
        for name in best.left:  # nothing more can go
            less = Options(options.shape, level, tuple(other for other in best.left if other != name))
            assert shrinking.rule not in attempt(seed, less).broken
    assert attempt(seed, of_replay(read(file))).broken == {}


@pytest.mark.parametrize(
    ("seed", "shape", "level"),
    [
        (3, {}, "links"),
        (1008, {"transactions": True, "convoys": True}, "links"),
        (3, {"transactions": True}, "group"),
        (1008, {"transactions": True}, "all"),
        (3, {}, "wiped"),
    ],
)
def test_a_world_of_which_all_is_left_is_the_world(seed: int, shape: dict[str, Any], level: Level) -> None:
    """A world notes all that it asks for."""
    whole = attempt(seed, Options(shape, level))
    assert attempt(seed, Options(shape, level, tuple(whole.left))) == whole


@pytest.mark.parametrize("transactions", [{}, {"transactions": True}], ids=str)
def test_a_call_keeps_its_number_when_those_before_it_are_gone(transactions: dict[str, object]) -> None:
    """What an instance does is drawn by its invocation."""
    shape = {**transactions, "abort": 0.0, "cancel": 0.0, "repeat": 0.0, "conflict": 0.0}
    for seed in range(8):
        options = Options(shape, "none")
        whole = attempt(seed, options)
        acts = [name for name in whole.left if name.startswith("act c") and "/" not in name]
        left = tuple(name for name in whole.left if name not in acts[::2])
        sent, rest = _sent(seed, options), _sent(seed, Options(shape, "none", left))
        assert 0 < len(rest) < len(sent)
        assert rest.items() <= sent.items()


def _sent(seed: int, options: Options) -> dict[str, tuple[Any, ...]]:
    """What was sent, but for outcomes: by invocation."""
    return {
        r.invocation: (r.kind, r.parts)
        for t in run(seed, options).traces
        for r in t.records
        if r.event == "send" and r.invocation.rpartition(".")[2] != "0" and r.parts[0][0] != "tran"
    }


def test_a_node_that_is_gone_takes_its_replicas_with_it() -> None:
    whole = attempt(5, Options(faults="all"))
    left = tuple(name for name in whole.left if name != "node n2")
    done = run(5, Options(faults="all", left=left))
    assert done.verdict.violations == []
    assert "n2" not in {t.header.node for t in done.traces}
    assert not any(d.endswith("@n2") for t in done.traces for r in t.records for d, _ in r.dests)


def test_a_run_that_crashes_is_shrunk_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise KeyError("o1")

    monkeypatch.setattr("framework.sim.actors.Actors.settle", wrong)
    shrinking = Shrinking(0, Options({"transactions": True}))
    shrinking.run()
    assert shrinking.rule == "crash KeyError"
    assert "test_shrink.py" in shrinking.replay().violation
    assert len([name for name in shrinking.best.left if name.startswith("act ")]) <= 2


def test_a_clean_seed_has_nothing_to_shrink() -> None:
    with pytest.raises(BadRequest, match="seed 7 is clean"):
        Shrinking(7, Options())


def test_a_file_that_is_none_or_of_another_version(tmp_path: Path) -> None:
    file = tmp_path / "small.json"
    with pytest.raises(BadRequest, match="No such file"):
        read(file)
    for text in (
        "",
        "{}",
        "[1]",
        '{"replay": "obo load", "version": 1}',
        '{"replay": "obo sim", "version": 1}',
        "\xff",
    ):
        file.write_text(text, encoding="latin-1")
        with pytest.raises(BadRequest, match="no file that obo sim --shrink has written"):
            read(file)
    file.write_text(f'{{"replay": "obo sim", "version": {VERSION + 1}, "new": []}}', encoding="utf-8")
    with pytest.raises(BadRequest, match=f"a file of version {VERSION + 1}; this obo reads version {VERSION}"):
        read(file)
