"""``obo verify``: verdicts from files, and what it says to files that are damaged, mixed up or lie."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from framework.cli.look import Look
from framework.cli.verify import judge_run, runs
from framework.errors import BadTrace
from framework.sim.batch import Job, perform
from framework.sim.picture import Cut, of_traces
from framework.sim.run import Options
from framework.sim.svg import draw
from framework.trace.check import load
from framework.trace.files import file_name, write
from tests.cli.run_obo import obo
from tests.sim.hand import Hand
from tests.tiers import examples

NOTHING = Look(False, None, Cut())
SHAPE = Options({"nodes": 3, "objects": 3, "clients": 2, "calls": 3, "repeat": 0.5})
SEED = 11


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """DIR/<seed>/<node>.jsonl of two seeds."""
    directory = tmp_path_factory.mktemp("traces")
    for seed in (9, SEED):
        assert not perform(Job(seed, SHAPE, str(directory))).violations
    return directory


@pytest.fixture
def one(traces, tmp_path):
    """A run of its own for a test to damage: lines of each file."""
    return Damaged(traces / str(SEED), tmp_path)


class Damaged:
    def __init__(self, source, target):
        self.target = Path(target)
        self.files = {f.name: f.read_bytes().splitlines(keepends=True) for f in sorted(Path(source).glob("*.jsonl"))}

    def find(self, event, **fields):
        """(file, line index, record) of the first such record."""
        for name, lines in self.files.items():
            for n, line in enumerate(lines[1:], 1):
                record = json.loads(line)
                if record["event"] == event and all(record.get(k) == v for k, v in fields.items()):
                    return name, n, record
        raise AssertionError(event)

    def change(self, event, fields):
        """Put fields into the first record of this event. Returns FILE:LINE."""
        name, n, record = self.find(event)
        self.files[name][n] = json.dumps({**record, **fields}).encode() + b"\n"
        return f"{self.target / name}:{n + 1}"

    def header(self, name, **fields):
        self.files[name][0] = json.dumps({**json.loads(self.files[name][0]), **fields}).encode() + b"\n"

    def renumber(self):
        for name, lines in self.files.items():
            for n, line in enumerate(lines[1:], 1):
                lines[n] = json.dumps({**json.loads(line), "i": n}).encode() + b"\n"
            self.files[name] = lines

    def paths(self):
        for name, lines in self.files.items():
            (self.target / name).write_bytes(b"".join(lines))
        return [self.target / name for name in self.files]

    def judged(self):
        return judge_run("run", self.paths(), NOTHING)


def test_a_table_for_people(traces):
    done = obo("verify", traces / "9")
    assert done.returncode == 0, done.stderr
    for word in ("requests", "delivered", "duplicates", "fast", "slow", "pairs", "ordered", "violations"):
        assert word in done.stdout
    assert done.stdout.endswith("1 run judged: no violation found\n")


def test_a_directory_of_runs_is_judged_run_by_run_and_seeds_count_as_numbers(traces):
    done = obo("verify", "--json", traces)
    assert done.returncode == 0
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [Path(o["run"]).name for o in told] == ["9", str(SEED)]
    numbers = ["requests", "delivered", "duplicates", "fast", "slow", "pairs", "ordered", "views", "crashed", "adopted"]
    assert list(told[0])[1:-1] == numbers
    assert all(o["violations"] == [] and o["delivered"] > 0 for o in told)


def test_files_named_one_by_one_are_one_run(traces):
    files = sorted((traces / "9").glob("*.jsonl"))
    together = judge_run("", runs([str(f) for f in files])[0][1], NOTHING)
    assert together.verdict == judge_run("", runs([str(traces / "9")])[0][1], NOTHING).verdict


def test_a_violation_ends_with_1(one):
    states = [json.loads(line) for lines in one.files.values() for line in lines if b'"state"' in line]
    twin = next(
        x for n, x in enumerate(states) if x.get("performed") and x["digest"] in [y["digest"] for y in states[:n]]
    )
    name, n, record = one.find("state", replica=twin["replica"])
    one.files[name][n] = json.dumps({**record, "digest": "0123"}).encode() + b"\n"
    one.paths()
    done = obo("verify", one.target)
    assert done.returncode == 1
    assert "A7: " in done.stdout
    assert "1 run judged: 1 with violations" in done.stdout
    told = json.loads(obo("verify", "--json", one.target).stdout)
    assert told["violations"][0]["rule"] == "A7"


def test_unreadable_ends_with_2_and_the_others_are_judged_all_the_same(traces, tmp_path):
    for run in ("1", "2"):
        (tmp_path / run).mkdir()
        for file in (traces / "9").glob("*.jsonl"):
            (tmp_path / run / file.name).write_bytes(file.read_bytes()[: None if run == "2" else -5])
    done = obo("verify", tmp_path)
    assert done.returncode == 2
    assert "1 of 2 runs judged: no violation found" in done.stdout
    assert done.stderr.startswith(f"obo: error: {tmp_path / '1'}")
    assert "the last line is cut off" in done.stderr
    assert done.stderr.count("\n") == 1
    told = [json.loads(line) for line in obo("verify", "--json", tmp_path).stdout.splitlines()]
    assert "cut off" in told[0]["error"]
    assert told[1]["violations"] == []


@pytest.mark.parametrize(
    ("target", "told"),
    [("missing", "missing: no such file or directory"), ("empty", "empty: no trace files (*.jsonl) in this directory")],
)
def test_nothing_there(tmp_path, target, told):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadTrace) as error:
        runs([str(tmp_path / target)])
    assert told in str(error.value)


def test_a_missing_file_is_told(one):
    del one.files["n2.jsonl"]
    assert "n2 is a member, but its trace is not here: give all files of the run together" in one.judged().error


def test_two_files_of_one_node(one):
    one.files["copy.jsonl"] = one.files["n1.jsonl"]
    assert "a second trace of n1; the first is" in one.judged().error


def test_files_of_different_runs(traces, one):
    one.files["n3.jsonl"] = (traces / "9" / "n3.jsonl").read_bytes().splitlines(keepends=True)
    assert "traces of different runs?" in one.judged().error
    assert f"{one.target / 'n3.jsonl'}:1: " in one.judged().error


@pytest.mark.parametrize(
    ("event", "fields", "told"),
    [
        ("arrive", {"replica": "o9@n1"}, "no replica 'o9@n1' in the header"),
        ("deliver", {"replica": "nobody"}, "no replica 'nobody' in the header"),
        ("state", {"replica": ""}, "no replica '' in the header"),
        ("deliver", {"footprint": None}, "the footprint is missing"),
        ("deliver", {"sid": "x"}, "sid 'x' is no start identifier such as 12:bank@n1"),
        ("deliver", {"group": "1:tran@n1"}, "is no group id such as 12:bank@n1:0"),
        ("deliver", {"invocation": "c1"}, "invocation 'c1' is no invocation id such as ann/3.1"),
        ("deliver", {"way": "soon"}, "way 'soon'; expected fast, slow or none"),
        ("send", {"invocation": "c1/x"}, "invocation 'c1/x' is no invocation id"),
        ("send", {"invocation": "c1/" + "9" * 5000}, "is no invocation id"),
        ("send", {"no": 77}, "the group id does not consist of sid"),
        ("send", {"parts": []}, "the parts name no object; expected each object once"),
        ("send", {"parts": [["zz", ["a", None, False]]]}, "no object 'zz' in the header"),
        ("send", {"dests": [["zz@n1", 1]]}, "destination 'zz@n1' is no replica of"),
        ("send", {"dests": []}, "do not fit the parts"),
        ("receive", {"sid": "99:tran@n1"}, "99:tran@n1 receives, but"),
        ("receive", {"group": "99:tran@n1:0"}, "did not send it before"),
        ("receive", {"received": [["zz@n1", "ok"]]}, "a response from 'zz@n1', which is no destination"),
        ("end", {"surprise": 1}, "unknown field `surprise`"),
        ("end", {"event": "begin"}, "Invalid enum value"),
    ],
)
def test_a_record_that_cannot_be_is_named_by_file_and_line(one, event, fields, told):
    where = one.change(event, fields)
    error = one.judged().error
    assert error.startswith(f"{where}: "), error
    assert told in error


def test_a_group_that_is_sent_twice(one):
    name, n, _ = one.find("send")
    one.files[name].insert(n + 1, one.files[name][n])
    one.renumber()
    assert f"{one.target / name}:{n + 2}: send of " in one.judged().error
    assert f"the same group was sent before, at {one.target / name}:{n + 1}" in one.judged().error


def test_headers_that_cannot_be(one):
    one.header("n1.jsonl", node="n9")
    assert f"{one.target / 'n1.jsonl'}:2: record 1 of n1; expected 1 of n9" in one.judged().error
    one.header("n1.jsonl", node="n1", members=["n2", "n3"])
    assert "'n1' is not among the members n2, n3" in one.judged().error
    one.header("n1.jsonl", version=2, members=["n1", "n2", "n3"])
    assert f"{one.target / 'n1.jsonl'}:1: trace version 2; this obo reads version 1" in one.judged().error


def test_what_may_be_the_fault_of_the_protocol_is_a_violation_and_no_error(one):
    """A delivery of something never sent."""
    name, n, record = one.find("send")
    group = record["group"]
    for lines in one.files.values():
        lines[1:] = [
            x for x in lines[1:] if not (json.loads(x)["event"] == "receive" and json.loads(x)["group"] == group)
        ]
    del one.files[name][n]
    one.renumber()
    judged = one.judged()
    assert not judged.error
    assert any(v.rule == "A1" and "never sent" in v.text for v in judged.violations)


# anything at all may be wrong with a file

words = st.one_of(
    st.text(max_size=8), st.sampled_from(["o1@n1", "o1", "n1", "c1/1", "c1/1.1", "1:tran@n1", "1:tran@n1:0"])
)
values = st.one_of(words, st.integers(), st.none(), st.booleans(), st.floats(), st.lists(words, max_size=2))


@st.composite
def damages(draw):
    """A list of (how, where, where else, what)."""
    how = st.sampled_from(["byte", "drop", "double", "swap", "truncate", "field", "borrow", "mix"])
    spot = st.integers(0, 10_000)
    return draw(st.lists(st.tuples(how, spot, spot, values), min_size=1, max_size=3)), draw(st.booleans())


def damage(run, how, a, b, what):
    name = sorted(run.files)[a % len(run.files)]
    lines = run.files[name]
    if not lines:
        return
    n, m = b % len(lines), (a * 7 + b) % len(lines)
    if how == "byte":
        line = bytearray(lines[n])
        spot = a % max(1, len(line))
        line[spot : spot + 1] = bytes([b % 256])
        lines[n] = bytes(line)
    elif how == "drop":
        del lines[n]
    elif how == "double":
        lines.insert(n, lines[n])
    elif how == "swap":
        lines[n], lines[m] = lines[m], lines[n]
    elif how == "truncate":
        lines[n:] = [lines[n][: a % (len(lines[n]) + 1)]]
    elif how == "mix":
        other = run.files[sorted(run.files)[(a + 1) % len(run.files)]]
        lines[n:n] = other[b % max(1, len(other)) :][:1]
    else:
        _field(lines, n, m, a, what if how == "field" else None)


def _field(lines, n, m, a, what):
    """Another value for a field: anything, or that of another record."""
    try:
        record, other = json.loads(lines[n]), json.loads(lines[m])
    except ValueError:
        return
    key = sorted(record)[a % len(record)]
    record[key] = other.get(key, record[key]) if what is None else what
    lines[n] = json.dumps(record).encode() + b"\n"


@settings(max_examples=examples(30, 400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damages())
@example(([("byte", 0, 0, None)], False))
def test_whatever_is_wrong_there_is_a_verdict_or_an_error_that_names_the_place(traces, wrong):
    changes, renumber = wrong
    with TemporaryDirectory() as directory:
        run = Damaged(traces / str(SEED), directory)
        for how, a, b, what in changes:
            damage(run, how, a, b, what)
        if renumber:  # else the numbers of the records tell most of it
            try:
                run.renumber()
            except (ValueError, TypeError, AttributeError):
                pass
        judged = run.judged()
        assert judged.verdict is not None or judged.error.startswith(directory)
        msgspec.json.encode(judged)
        if judged.verdict is not None:  # what can be judged can be drawn
            ElementTree.fromstring(draw(of_traces(load(run.paths())), "fuzz"))


# several lives of a node


def several_lives(directory, lose=False):
    """n3 crashes, and joins again in view 3."""
    hand = Hand()
    m = hand.send(hand.client("ann", "n1"), "f.w@n1,n2,n3")
    hand.perform(m, *(["f@n2"] if lose else ["f@n1", "f@n2"]))
    hand.install(2, "n1", "n2")
    hand.join("n3", 3, "n1", "n2", "n3#3")
    hand.install(3, "n1", "n2", "n3#3")
    for name in ("f", "g", "o"):
        hand.hand_over(f"{name}@n1", f"{name}@n3")
    hand.stop()
    for trace in (*hand.earlier, *hand.traces.values()):
        write(directory / file_name(trace.header.node, trace.header.life), trace)


def test_several_lives_of_a_node_are_one_run(tmp_path):
    several_lives(tmp_path)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["n1.jsonl", "n2.jsonl", "n3.jsonl", "n3.since3.jsonl"]
    done = obo("verify", "--json", tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["views"], told["crashed"], told["adopted"], told["delivered"]) == (3, 1, 3, 2)
    assert "torn" not in told
    table = obo("verify", tmp_path).stdout
    assert all(word in table for word in ("views", "crashed", "adopted"))


def test_a_violation_names_the_life(tmp_path):
    several_lives(tmp_path, lose=True)
    done = obo("verify", tmp_path)
    assert done.returncode == 1
    assert "A8: 1:tran@n1:0 (ann/1) was never delivered at f@n1" in done.stdout


def test_what_a_crashed_life_lost_is_told(tmp_path):
    several_lives(tmp_path)
    n1 = tmp_path / "n1.jsonl"
    lines = n1.read_bytes().splitlines(keepends=True)
    n1.write_bytes(b"".join(line for line in lines if b'"snapshot"' not in line and b'"stop"' not in line))
    done = obo("verify", tmp_path)
    assert done.returncode == 0, done.stdout
    assert "torn: 3 accepted, because a life that crashed has not written down its side" in done.stdout
