"""``obo load fig9``: the simulator's forest of calls on real nodes, and what its traces tell."""

import tomllib

import pytest

from framework.analytics.lives import read_life
from framework.declare import declaration
from framework.load import fig9_objects
from framework.load.fig9 import cells
from framework.load.plan import Plan
from framework.orb.load import load_class
from framework.sim import fig9 as simulated
from framework.sim.fig9_count import COUNTINGS, MAIN
from framework.sim.fig9_workload import DEPTH
from framework.sim.program import METHODS
from tests.cli.run_obo import obo
from tests.load.fig9_points import not_ordered, of_point


def test_the_points_are_those_of_the_figure():
    points = cells(Plan(workload="fig9", step=10, seeds=2), 6)
    assert len(points) == 2 * 3 * 11
    assert {p.ucast for p in points} == {0, 50, 100}
    assert {p.conflict for p in points} == set(range(0, 101, 10))
    names = [name for p in points for name in p.objects()]
    assert len(set(names)) == len(names) == 66 * 9, "each point has objects of its own"


@pytest.mark.parametrize("conflict", [0, 30, 60, 100])
def test_classes_declare_what_the_simulator_s_objects_have(conflict):
    point = fig9_objects.cell(6, 3, 50, conflict)
    pairs = 0
    for kindred, target in zip(point.forest.objects, point.objects().values(), strict=True):
        relation = declaration(load_class(target)).relation
        assert set(relation.rows) <= set(METHODS)
        assert relation.rows == kindred.relation.rows
        pairs += sum(relation.methods(a, b) for i, a in enumerate(METHODS) for b in METHODS[i:])
    assert pairs == conflict * 9 // 10
    assert [o.level for o in point.forest.objects] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert DEPTH == 3


@pytest.mark.full
def test_real_nodes_do_what_the_simulator_does(tmp_path):
    """The same calls, exactly; and about as much of it ordered: on real nodes other things happen at once."""
    run = tmp_path / "run"
    done = obo("load", "fig9", "--out", run, "--step", 100, "--seeds", 1, "--seed", 5)
    assert done.returncode == 0, done.stderr
    points = tomllib.loads((run / "run.toml").read_text())["fig9"]["points"]
    assert [(p["ucast"], p["conflict"]) for p in points] == [(u, c) for u in (0.0, 0.5, 1.0) for c in (0.0, 1.0)]
    traces = [read_life(p.parent) for p in sorted(run.glob("traces/*/header.json"))]
    live = {}
    for p in points:
        sim = simulated.measure(simulated.Task(p["ucast"], round(100 * p["conflict"]), 5), simulated.Workload())
        sends = [r for t in of_point(traces, p["objects"]) for r in t.records if r.event == "send"]
        assert sum(len(r.dests) for r in sends) == sim.requests
        assert {r.client for r in sends if r.client} == set(p["clients"])
        assert {r.transmission for r in sends} <= {"ucast", "pcast"}
        assert {r.receipt for r in sends if r.transmission == "ucast" and r.client} <= {"srec"}
        share = live[p["ucast"], p["conflict"]] = not_ordered(traces, p["objects"])
        expected = sim.tallies[COUNTINGS.index(MAIN)].not_ordered
        assert share == pytest.approx(expected, abs=15)
    for ucast in (0.0, 0.5, 1.0):
        assert live[ucast, 0.0] > live[ucast, 1.0] + 20, "the more conflicts, the more is ordered"
    assert live[0.0, 1.0] > live[1.0, 1.0], "the more multicast, the less is ordered"
