"""What a run writes: rotated, whole or not there, and kept when a process is killed; and settings that cannot be."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from framework.analytics.columns import ClientRecord, to_client_records
from framework.analytics.lives import read_life
from framework.errors import BadRequest, BadTrace
from framework.load.parts import Parts
from framework.load.plan import Plan, plan, read
from framework.load.rundir import RunDirectory
from framework.load.spool import Spool, salvage
from framework.load.traces import Converter, convert
from framework.sim.oracle import judge
from framework.sim.run import run
from framework.trace.check import load
from framework.trace.files import Trace, write

DONE = run(5)


def record(number: int) -> ClientRecord:
    return ClientRecord(
        client="c", process=0, number=number, invocation=f"c/{number}", object="o", method="m",
        intended=1.0, sent=1.0, done=2.0,
    )  # fmt: skip


def numbers(directory: Path) -> list[int]:
    parts = sorted(directory.glob("part-*.parquet"))
    return [r.number for p in parts for r in to_client_records(pq.read_table(p))]


# client records


def test_records_are_rotated_and_compressed(tmp_path):
    spool = Spool(tmp_path, 1, 3, rows=100)
    for start in range(0, 350, 50):
        spool.put([record(n) for n in range(start, start + 50)])
    spool.close()
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == [f"part-{n:05d}.parquet" for n in (1, 4, 7, 10)], "process 1 of 3 has these numbers"
    assert (spool.files, spool.rows) == (4, 350)
    assert numbers(tmp_path) == list(range(350))
    column = pq.ParquetFile(tmp_path / names[0]).metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_a_killed_process_leaves_what_it_had_written(tmp_path):
    """By kill -9, in the middle of a part; the last piece may be cut anywhere."""
    program = textwrap.dedent(f"""
        import time
        from pathlib import Path
        from framework.load.spool import Spool
        from tests.load.test_files import record
        spool = Spool(Path({str(tmp_path)!r}), 0, 1, rows=100)
        for n in range(150):
            spool.put([record(n)])
        while not Path({str(tmp_path / "open-00001.arrows")!r}).exists() or spool._queue.qsize():
            time.sleep(0.05)
        time.sleep(0.5)
        print("written", flush=True)
        time.sleep(60)
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=os.getcwd()) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.send_signal(signal.SIGKILL)
    (left,) = tmp_path.glob("open-*.arrows")
    whole = left.read_bytes()
    left.write_bytes(whole[:-100])
    assert salvage(left) == 49
    assert numbers(tmp_path) == list(range(149)), "one record was in the piece that is cut"
    assert not list(tmp_path.glob("open-*")) + list(tmp_path.glob("*.writing"))


def test_a_part_that_was_finished_is_not_there_twice(tmp_path):
    spool = Spool(tmp_path, 0, 1)
    spool.put([record(1)])
    time.sleep(0.3)
    kept = (tmp_path / "open-00000.arrows").read_bytes()
    spool.close()
    (tmp_path / "open-00000.arrows").write_bytes(kept)  # as if it was killed just before it had removed it
    assert salvage(tmp_path / "open-00000.arrows") == 0
    assert numbers(tmp_path) == [1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told(tmp_path):
    (tmp_path / "open-00000.arrows").symlink_to("/dev/full")
    spool = Spool(tmp_path, 0, 1)
    for n in range(100):  # nobody hangs, either
        spool.put([record(n)])
    with pytest.raises(OSError, match="No space left"):
        spool.close()


# traces


@pytest.fixture
def traces(tmp_path):
    files = [tmp_path / f"{t.header.node}.jsonl" for t in DONE.traces]
    for path, trace in zip(files, DONE.traces, strict=True):
        write(path, trace)
    return files


def test_a_trace_comes_back_equal_and_gets_the_same_verdict(tmp_path, traces):
    lives = [convert(path, tmp_path / "traces") for path in traces]
    assert [life.records for life in lives] == [len(t.records) for t in DONE.traces]
    assert all((life.dropped, life.unreadable, life.cut, life.ended) == (0, 0, 0, "stop") for life in lives)
    back = load(sorted((tmp_path / "traces").iterdir()), read_life)
    assert back == DONE.traces
    assert judge(back) == DONE.verdict
    assert (tmp_path / "traces" / "n1" / "header.json").read_bytes() == traces[0].read_bytes().splitlines(True)[0]


def test_a_violation_is_one_in_parquet_too(tmp_path):
    """Two conflicting deliveries swapped on one replica: the same verdict as on the JSON lines."""
    for at in range(len(DONE.traces)):
        for traces in swapped(at):
            if any(v.rule == "A3" for v in judge(traces).violations):
                break
        else:
            continue
        break
    else:
        pytest.fail("no pair of this run conflicts")
    for trace in traces:
        write(tmp_path / f"{trace.header.node}.jsonl", trace)
    files = sorted(tmp_path.glob("*.jsonl"))
    for file in files:
        convert(file, tmp_path / "traces")
    assert judge(load(sorted((tmp_path / "traces").iterdir()), read_life)) == judge(load(files))


def swapped(at):
    """The run, each time with two instances of one replica of this node in the other order."""
    found = DONE.traces[at].records
    begun = [i for i, r in enumerate(found) if r.event == "deliver"]
    for n, first in enumerate(begun):
        for second in begun[n + 1 :]:
            ends = [i for i, r in enumerate(found) if r.event == "end" and r.sid == found[second].sid]
            if found[second].replica != found[first].replica or not ends:
                continue
            order = list(range(len(found)))
            for i in (ends[0], second):
                order.remove(i)
                order.insert(first, i)
            records = [msgspec.structs.replace(found[i], i=k) for k, i in enumerate(order, 1)]
            yield [Trace(t.header, records) if t is DONE.traces[at] else t for t in DONE.traces]


def test_in_pieces_it_is_the_same(tmp_path, traces):
    data = traces[0].read_bytes()
    converter = Converter(tmp_path / "traces" / "n1")
    for start in range(0, len(data), 777):
        converter.take(data[start : start + 777])
    converter.close()
    assert read_life(tmp_path / "traces" / "n1") == DONE.traces[0]


def test_what_is_missing_is_counted(tmp_path, traces):
    lines = traces[0].read_bytes().splitlines(True)
    damaged = [*lines[:5], *lines[8:12], b"{nonsense\n", *lines[13:], lines[-1][:20]]
    traces[0].write_bytes(b"".join(damaged))
    life = convert(traces[0], tmp_path / "traces")
    assert (life.dropped, life.unreadable, life.cut) == (3 + 1, 1, 20)
    with pytest.raises(BadTrace, match=r"record 8 of n1; expected 5 of n1"):
        read_life(tmp_path / "traces" / "n1")


def test_an_empty_trace_is_nothing(tmp_path):
    (tmp_path / "n1.jsonl").write_bytes(b"")
    assert convert(tmp_path / "n1.jsonl", tmp_path / "traces").records == 0
    assert not (tmp_path / "traces" / "n1").exists()


def test_damaged_parquet_is_told(tmp_path, traces):
    convert(traces[0], tmp_path / "traces")
    part = tmp_path / "traces" / "n1" / "part-00000.parquet"
    part.write_bytes(part.read_bytes()[:-10])
    with pytest.raises(BadTrace, match=r"part-00000\.parquet: not a Parquet file"):
        read_life(part.parent)
    (part.parent / "header.json").write_text(json.dumps({"version": 9}))
    with pytest.raises(BadTrace, match="trace version 9"):
        read_life(part.parent)


def test_parts_have_their_name_when_they_are_whole(tmp_path):
    from framework.analytics.columns import TRACE, from_records

    parts = Parts(tmp_path, TRACE, rows=10)
    parts.write(from_records(DONE.traces[0].records[:5]))
    assert [p.name for p in tmp_path.iterdir()] == ["part-00000.writing"]
    parts.write(from_records(DONE.traces[0].records[5:10]))
    parts.write(from_records(DONE.traces[0].records[10:12]))
    parts.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["part-00000.parquet", "part-00001.parquet"]
    assert (parts.files, parts.rows) == (2, 12)


# settings


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"rate": -1}, "rate = -1: from 0"),
        ({"rate": float("nan")}, "rate = nan"),
        ({"duration": 0}, "duration = 0: from 0.1"),
        ({"clients": 0}, "clients = 0: from 1"),
        ({"conflict": [1.5]}, "conflict: shares from 0 to 1"),
        ({"conflict": []}, "conflict: shares"),
        ({"clients": 2, "processes": 3}, "3 processes for 2 clients"),
        ({"arrivals": "poisson"}, "is for an open loop"),
        ({"arrivals": "odd", "rate": 1}, "Invalid enum value 'odd'"),
        ({"ucast": 0.7, "mcast": 0.7}, "1.4 together"),
        ({"ucast": 0.2, "mcast": 0.2, "pcast": 0.2}, "0.6 together"),
        ({"oneway": 1, "receipt": "all"}, "never received"),
        ({"receipt": "most"}, "receipt 'most'"),
        ({"in_flight": 1, "clients": 2, "processes": 2}, "need one each"),
        ({"seed": "one"}, "seed"),
    ],
)
def test_settings_that_cannot_be(settings, told):
    with pytest.raises(BadRequest) as caught:
        plan({"workload": "bank", **settings})
    assert told in str(caught.value)


def test_a_file_of_settings(tmp_path):
    path = tmp_path / "w.toml"
    path.write_text('workload = "bank"\nrate = 50\nconflict = 0.5\n')
    assert plan(read(path)) == Plan(workload="bank", rate=50, conflict=(0.5,))
    for text, told in {
        "workload = 'bank'\nrat = 5": r"no setting 'rat'; did you mean 'rate'",
        "rate = 5": "no workload",
        "workload = ": "w.toml: ",
    }.items():
        path.write_text(text)
        with pytest.raises(BadRequest, match=told):
            read(path)
    with pytest.raises(BadRequest, match="No such file"):
        read(tmp_path / "none.toml")


def test_shares_that_are_not_given_are_what_is_left():
    assert Plan(workload="x").ways is None
    assert Plan(workload="x", ucast=0.4).ways == pytest.approx((0.4, 0.3, 0.3))
    assert Plan(workload="x", ucast=0.0, pcast=0.25).ways == pytest.approx((0.0, 0.75, 0.25))


def test_the_directory_must_not_be_there(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "something").touch()
    with pytest.raises(BadRequest, match="exists and is not empty"):
        RunDirectory(tmp_path / "old", Plan(workload="bank")).make()
    with pytest.raises(BadRequest, match="cannot be written: Not a directory"):
        RunDirectory(tmp_path / "old" / "something" / "run", Plan(workload="bank")).make()
    RunDirectory(tmp_path / "new" / "run", Plan(workload="bank")).make()
    assert (tmp_path / "new" / "run" / "run.toml").exists()
