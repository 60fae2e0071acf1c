"""The Spark jobs and ``obo verify`` come to one verdict on the same traces, and both count messages as ``obo fig9``.

One job judges them all: clean runs, planted violations, and runs of a protocol with a rule switched off.
"""

from collections import defaultdict

import pytest

from framework.analytics import groups, reading, tables, verdict
from framework.sim.fig9_count import MAIN, Counter
from framework.sim.fig9_relation import relations
from framework.sim.fig9_workload import Workload, traces
from framework.sim.run import Options, run

from ..sim.mutants import FOCUS, MUTANTS
from ..sim.tran_mutants import TRAN_MUTANTS
from .universe import PLANTS, is_stuck, oracle, write

pytestmark = pytest.mark.full

#: Seeds that show the violation soon; tests/sim/test_mutants.py looks for them.
WRONG = {
    "delivered before its predecessors": 0,
    "conflicting requests not in stamp order": 2,
    "no ready condition": 0,
    "performed again when a copy arrives": 3,
    "siblings of a group forgotten": 18,
    "reads forgotten by their own instance": 0,
    "commit leaves nothing": 4,
    "a quorum with one answer less": 3,
    "one of several replicas is stopped": 1,
    "an abort is answered as if it had committed": 2,
}
CLEAN = {"links": (0, 2, 3, 7), "all": (4, 5)}
WHOLE = {"links": (0, 1, 214, 280, 1002), "all": (4, 90, 167, 292, 1008, 1020, 1246, 1273)}  # with transactions
#: Of tests/sim/tran_mutants.py, with a seed that shows each.
HALF = {
    "what is held stays when the transaction is aborted": ("links", 0),
    "what a callee did that failed stays": ("links", 44),
    "what is held keeps nobody out": ("links", 11),
    "outcomes have no order": ("links", 50),
    "votes have no order": ("links", 1048),
    "one vote is enough": ("links", 1011),
}


def planted():
    """By name: the traces of a run, and what obo verify says of them."""
    runs = {}
    for level, seeds in CLEAN.items():
        for seed in seeds:
            traces = run(seed, Options(faults=level)).traces
            runs[f"{level}{seed}x"] = traces
            for name, plant in PLANTS.items():
                changed = plant(traces) if level == "links" or name == "twice" else None
                if changed is not None:
                    runs[f"{level}{seed}{name}"] = changed
    return runs


def mutants(monkeypatch):
    runs = {}
    for number, (name, seed) in enumerate(WRONG.items()):
        owner, attribute, replacement = MUTANTS[name]
        with monkeypatch.context() as patch:
            patch.setattr(owner, attribute, replacement)
            runs[f"mutant{number}s{seed}x"] = run(seed, Options(shape=FOCUS.get(name, {}))).traces
    return runs


def whole():
    """Runs with transactions, and what becomes of some of them with violations planted."""
    runs = {}
    for level, seeds in WHOLE.items():
        for seed in seeds:
            runs[f"whole{level}{seed}x"] = run(seed, Options({"transactions": True, "lasting": False}, level)).traces
    return runs


def half(monkeypatch):
    """Rules of transactions switched off."""
    runs = {}
    for number, (name, (level, seed)) in enumerate(HALF.items()):
        owner, attribute, replacement = TRAN_MUTANTS[name]
        with monkeypatch.context() as patch:
            patch.setattr(owner, attribute, replacement)
            runs[f"half{number}s{seed}x"] = run(seed, Options({"transactions": True, "lasting": False}, level)).traces
    return runs


POINTS = [(0.0, 0.0), (0.6, 0.0), (0.6, 1.0)]


def evaluation():
    """Runs of P0's evaluation, at some points of its figure."""
    return {f"point{n}x": traces(n, Workload(transactions=1, conflict=c, ucast=u)) for n, (c, u) in enumerate(POINTS)}


PLANTED = [("swap", "A3"), ("twice", "A1"), ("lost", "P0 §3.2"), ("noend", "A1"), ("never", "A8")]


@pytest.fixture(scope="module")
def judged(spark, tmp_path_factory):
    """(expected, found), by run and rule; and (expected, found) of the message ratio, by run."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs = planted() | mutants(monkeypatch) | whole() | half(monkeypatch) | evaluation()
    expected = {name: oracle(traces) for name, traces in runs.items()}
    base = tmp_path_factory.mktemp("universe")
    write(base / "run", runs)
    read = reading.read(spark, base / "run")
    who = groups.find(read)
    made, staged = verdict.stage(spark, tables.make(spark, read, who, base), base)
    rows = []
    for rule in verdict.local(spark, made, staged, who).values():
        rows += rule().collect()
    done = verdict.followed(spark, made, staged, 0.0, base)
    rows += done.broken.collect()
    assert done.open == 0
    found = defaultdict(lambda: defaultdict(set))
    for row in rows:
        name = next(n for n in runs if row.node.startswith(n + "n"))
        found[name][row.rule].add(row.text.replace(name, ""))
    counted = defaultdict(lambda: (0, 0))
    for row in done.pairs.where("startswith(node, 'point')").select("node", "ordered").collect():
        ordered, total = counted[row.node[:7]]
        counted[row.node[:7]] = (ordered + row.ordered, total + 1)
    tallies = {name: Counter(relations(runs[name])).tally(MAIN) for name in evaluation()}
    return expected, found, (tallies, counted)


def test_messages_are_counted_as_the_simulator_counts_them(judged):
    tallies, counted = judged[2]
    assert {name: (t.ordered, t.base) for name, t in tallies.items()} == dict(counted)
    assert all(t.base > 100 for t in tallies.values())


def test_runs_with_transactions_are_clean(judged):
    expected, found, _ = judged
    clean = [name for name in expected if name.startswith("whole")]
    assert len(clean) == 13
    assert not [(name, found[name], expected[name]) for name in clean if found[name] or expected[name]]


def test_half_transactions_are_found_by_both(judged):
    expected, found, _ = judged
    half = [name for name in expected if name.startswith("half")]
    assert all(expected[name] and found[name] for name in half), half
    assert {rule for name in half for rule in found[name]} >= {"A4", "T1", "T2", "T3"}


def test_every_run_has_the_verdict_of_obo_verify(judged):
    expected, found, _ = judged
    for name, told in expected.items():
        mine = {rule for rule in told if rule in verdict.RULES and (rule != "A8" or left_open(told))}
        if is_stuck(told):  # the oracle could not go on: what it says beyond that something is wrong is not the whole
            assert found[name], f"{name}: {told}"
        else:
            assert set(found[name]) == mine, f"{name}: obo verify says {told}"


def left_open(told):
    """Of A8 the jobs look at what nodes say themselves."""
    return {text for text in told.get("A8", ()) if " stopped with " in text}


def test_what_was_left_open_is_told_word_for_word(judged):
    expected, found, _ = judged
    assert any(left_open(told) for told in expected.values())
    for name, told in expected.items():
        assert found[name].get("A8", set()) == left_open(told), name


def test_clean_runs_are_clean(judged):
    expected, found, _ = judged
    clean = [name for name in expected if name.startswith(("links", "all")) and name.endswith("x")]
    assert len(clean) == 6
    assert not [name for name in clean if found[name]]


@pytest.mark.parametrize(("plant", "rule"), PLANTED)
def test_planted_violations_are_found_by_both(judged, plant, rule):
    expected, found, _ = judged
    runs = [name for name in expected if name.endswith(plant) and not (is_stuck(expected[name]) and plant == "swap")]
    assert runs, "some run has room for it"
    for name in runs:
        assert rule in expected[name], f"{name}: obo verify does not see it"
        assert rule in found[name], f"{name}: Spark does not see it"


def test_mutants_break_every_rule(judged):
    expected, found, _ = judged
    broken = {rule for name in expected if name.startswith("mutant") for rule in found[name]}
    assert broken >= {"A1", "A2", "A3", "A4", "A7", "P0 §3.2"}


def test_what_is_said_of_significant_order_is_the_same_word_for_word(judged):
    expected, found, _ = judged
    for name, told in expected.items():
        if not is_stuck(told):
            assert {t.partition(" before ")[0] for t in found[name].get("A2", ())} == {
                t.partition(" before ")[0] for t in told.get("A2", ())
            }, name
