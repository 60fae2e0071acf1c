"""A11: one seed, one run. The same seed gives the same trace, byte for byte, in any process."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from framework.sim.program import SMALL
from framework.sim.run import Level, Options, build, run
from framework.sim.world import Faults, World
from framework.trace.files import Trace, write
from framework.trace.record import line

ROOT = Path(__file__).parent.parent.parent
SHAPES: list[dict[str, Any]] = [
    {},
    {"nodes": 5, "objects": 6, "clients": 5},
    {"conflict": 0.0, "oneway": 0.4},
    {"conflict": 1.0, "keys": 0, "ucast": 0.0},
    {"back": 0.8, "wide": 0.6, "later": 0.5},
    {"repeat": 0.9},
]


def text(traces: list[Trace]) -> bytes:
    return b"".join(line(item) for t in traces for item in (t.header, *t.records))


def digest(seed: int, shape: dict[str, Any], level: Level = "links") -> str:
    done = run(seed, Options(shape, level))
    assert len(done.traces[0].records) > 5
    groups = [*done.world.earlier, done.traces]
    return sha256(b"".join(map(text, groups))).hexdigest()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_same_seed_twice(shape: dict[str, Any]) -> None:
    for seed in range(3):
        assert digest(seed, shape) == digest(seed, shape)


@pytest.mark.parametrize(("level", "seeds"), [("all", 8), ("wiped", 4)])
def test_the_same_seed_twice_where_the_group_changes(level: Level, seeds: int) -> None:
    for seed in range(seeds):
        assert digest(seed, {}, level) == digest(seed, {}, level)


def test_another_seed_is_another_run() -> None:
    assert len({digest(seed, {}) for seed in range(12)}) == 12


def test_the_seeds_have_faults_of_every_kind() -> None:
    """Guards the others: what is repeated above is not only fair weather."""
    seen = [build(seed, Options(faults="all")).faults for seed in range(30)]
    small = Options({"transactions": True}, "all")
    seen += [build(seed, small).faults for seed in range(SMALL, SMALL + 10)]
    assert not any(f.wipes for f in seen)
    seen.append(build(0, Options(faults="wiped")).faults)
    for kind in Faults.__struct_fields__:
        assert any(getattr(f, kind) for f in seen), f"no {kind} in 40 seeds"
    links = [build(seed).faults for seed in range(12)]
    for kind in ("loss", "duplication", "reorder", "cuts", "pauses", "slow"):
        assert any(getattr(f, kind) for f in links), f"no {kind} in 12 seeds"
    assert not any(f.members for f in links)


def test_another_process_with_other_hashes() -> None:
    """Nothing iterates over a set of strings, nothing depends on an address."""
    code = (
        "import json, sys\n"
        "from tests.sim.test_determinism import SHAPES, digest\n"
        "print(json.dumps([digest(1, shape) for shape in SHAPES]))\n"
        "print(json.dumps([digest(seed, {}, 'all') for seed in range(4)]))\n"
        "print(json.dumps([digest(seed, {}, 'wiped') for seed in range(2)]))\n"
    )
    outputs = set()
    for hashes in ("0", "4242"):
        env = {**os.environ, "PYTHONHASHSEED": hashes}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_a_file_is_those_bytes(tmp_path: Path) -> None:
    traces = run(3).traces
    for trace in traces:
        write(tmp_path / trace.header.node, trace)
    files = [tmp_path / t.header.node for t in traces]
    assert b"".join(f.read_bytes() for f in files) == text(traces)


def test_looking_does_not_disturb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who watches the wires of a world (framework.sim.picture does) changes nothing of the run."""
    plain = text(run(7).traces)
    made = World.__init__

    def watched(self: World, *args: Any, **named: Any) -> None:
        made(self, *args, **named)
        self.on_transmit = lambda *what: None

    monkeypatch.setattr(World, "__init__", watched)
    assert text(run(7).traces) == plain
