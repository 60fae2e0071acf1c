"""Runs that are damaged, of another version, or none: named, left out with a count, or refused with a reason."""

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from framework.analytics import groups, reading
from framework.cli.commands import app
from framework.errors import BadTrace
from framework.trace.files import file_name
from framework.trace.files import write as write_lines

from ..trace.test_lives import a_run
from .small import three_calls
from .universe import write


@pytest.fixture
def lines(tmp_path):
    """A directory of *.jsonl."""
    for trace in three_calls():
        write_lines(tmp_path / "lines" / file_name(trace.header.node), trace)
    return tmp_path / "lines"


@pytest.fixture
def parquet(tmp_path):
    write(tmp_path / "run", {"": three_calls()})
    return tmp_path / "run"


def test_json_lines_and_parquet_are_the_same_rows(spark, lines, parquet):
    one, other = (reading.read(spark, path).events for path in (lines, parquet))
    assert one.columns == other.columns
    assert one.exceptAll(other).isEmpty() and other.exceptAll(one).isEmpty()
    assert one.count() == sum(len(t.records) for t in three_calls())


def test_a_line_that_is_cut_off_is_left_out_and_told(spark, lines):
    path = lines / "n2.jsonl"
    path.write_bytes(path.read_bytes()[:-7])
    run = reading.read(spark, lines)
    assert run.cut == 1
    assert any("cut off" in note.what and note.where == str(path) for note in run.notes)
    assert run.events.count() == sum(len(t.records) for t in three_calls()) - 1


def test_another_version_is_refused(spark, lines):
    path = lines / "n2.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2', 1))
    with pytest.raises(BadTrace, match=r"n2.jsonl:1: trace version 2; this obo reads version 1"):
        reading.read(spark, lines)


def test_files_of_different_runs_are_refused(spark, lines):
    path = lines / "n2.jsonl"
    path.write_bytes(path.read_bytes().replace(b'["deposit","deposit"]', b'["deposit","balance"]', 1))
    with pytest.raises(BadTrace, match=r"says otherwise than .* about bank: traces of different runs"):
        reading.read(spark, lines)


def test_a_trace_without_header_is_left_out_and_its_node_is_missed(spark, lines):
    (lines / "n2.jsonl").write_bytes(b"nonsense\n")
    run = reading.read(spark, lines)
    told = [note.what for note in run.notes]
    assert any("not a trace header" in what for what in told)
    assert any("n2 is a member, but its trace is not here" in what for what in told)
    assert all(note.hole for note in run.notes if note.count)
    assert {r.node for r in run.events.select("node").distinct().collect()} == {"n1"}


def test_a_parquet_file_without_its_end_is_left_out(spark, parquet):
    path = parquet / "traces" / "n1" / "part-00000.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    run = reading.read(spark, parquet)
    assert (run.cut, run.files) == (1, 2)
    assert any("cut off or damaged" in note.what and note.where == str(path) for note in run.notes)
    assert {r.node for r in run.events.select("node").distinct().collect()} == {"n2"}


def test_foreign_columns_are_refused(spark, parquet):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = parquet / "traces" / "n1" / "part-00000.parquet"
    pq.write_table(pa.table({"i": [1], "else": ["x"]}), path)
    with pytest.raises(BadTrace, match=r"columns differ .*: written by another version"):
        reading.read(spark, parquet)


def test_a_run_that_was_killed_has_no_settings(spark, parquet):
    (parquet / "run.toml").unlink()
    run = reading.read(spark, parquet)
    assert any("was it killed" in note.what for note in run.notes)


def test_traces_of_a_killed_run_are_read_where_its_nodes_left_them(spark, lines, parquet):
    """``obo load`` was killed while it converted the trace of n2: n1 is in Parquet, n2 half, and whole in logs/."""
    (parquet / "logs").mkdir()
    (lines / "n2.jsonl").rename(parquet / "logs" / "n2.jsonl")
    (parquet / "traces" / "n2" / "part-00000.parquet").unlink()
    run = reading.read(spark, parquet)
    assert any("as the nodes left them" in note.what for note in run.notes)
    assert sorted(one.name for one in run.lives) == ["n1", "n2"]
    assert run.events.count() == sum(len(t.records) for t in three_calls())
    told = CliRunner().invoke(app, ["verify", str(parquet), "--json"])
    assert '"error"' not in told.stdout, "obo verify reads the same"


def test_client_records_that_are_lost_are_counted(spark, parquet):
    (parquet / "clients").mkdir()
    (parquet / "clients" / "open-00000.arrows").write_bytes(b"x")
    (parquet / "run.toml").write_text('ended = "failed: obo load was killed"\n[clients]\nlost = 7\n')
    notes = reading.read(spark, parquet).notes
    assert any("have no record" in note.what and note.count == 7 for note in notes)
    assert any(note.where.endswith("open-00000.arrows") and note.count == 1 for note in notes)
    assert any("obo load was killed" in note.what for note in notes)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda p: None, "no such file or directory"),
        (lambda p: p.mkdir(), "no run: neither run.toml"),
        (lambda p: p.write_text("x"), "a file; give the directory"),
        (lambda p: (p / "traces").mkdir(parents=True), "no trace and no client record"),
    ],
)
def test_what_is_no_run(spark, tmp_path, make, what):
    path = tmp_path / "what"
    make(path)
    with pytest.raises(BadTrace, match=what):
        reading.read(spark, path)


def test_a_directory_of_runs_is_named(spark, lines, tmp_path):
    with pytest.raises(BadTrace, match=r"holds 1 runs \(lines\): name one or two"):
        reading.read(spark, tmp_path)


def test_a_state_of_a_donor_that_writes_no_trace():
    """Nobody can say what is in it, and nothing is blamed for it."""
    run = a_run()
    run[3].records[0] = replace(run[3].records[0], ticket="f@n1#d62340cf3b76064e")
    written = {
        (t.header.node, t.header.life): groups.Written(len(t.records), len(t.records), t.records[-1].event, 1.0, 3.0)
        for t in run
        if t.records
    }
    group = groups.Group(run, written)
    assert group.places["f@n3#3"].torn and group.faults == []
