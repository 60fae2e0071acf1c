"""Every example runs as a newcomer runs it: as a process, with nodes of its own or with those of ``--at``."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run_obo import surroundings
from tests.cluster.processes import processes
from tests.cluster.test_three_nodes import judged
from tests.tiers import only_full

EXAMPLES = Path(__file__).parents[2] / "examples"
TOML = (EXAMPLES / "cluster.toml").read_text()
OBJECTS = TOML[TOML.index("[objects.") :]
PATIENCE = 150  # seconds; a bound, not a measure

SAID = {
    "account": ["3"],
    "hello": [
        "ann has 10 and bob has 56",
        "refused: RefusedError: ann has 10, not 1000",
        "one replica says: 2 cars are free",
        *(f"{replica} says: 2 are free" for replica in ("car@n1", "car@n2", "hotel@n2", "hotel@n3")),
    ],
    "travel": [
        "the first to answer has 2 rooms on friday",
        "ann goes on friday with car 1 and sleeps in room 1",
        "left on friday: 1 cars, 1 rooms",
        "ann stays at home; left on friday: 2 cars, 2 rooms",
        "all rooms are taken; left on saturday: 2 cars, 0 rooms",
        "bob hears: NoTripError: no trip on saturday: hotel: SoldOutError: nothing is free on saturday",
        "trips of bob: []; left on saturday: 2 cars, 0 rooms",
    ],
    "fanout": [
        "300 calls one by one: N ms",
        "300 calls at once: N ms",
        "the counter has grown by 600",
        "balances: {'fay': 0, 'gil': 0, 'hal': 0}",
        "300 calls at once, by coroutines: N ms",
        "the counter has grown by 300",
        "refused: 3 of 3: RefusedError: nobody has 0, not 1",
    ],
    "oneway": [
        "400 writes are on their way, none was waited for",
        *(f"3 replicas say: chapter {chapter}, version 100" for chapter in range(4)),
    ],
    "own": ["{'coffee': 1, 'tea': 2}"],
    "sql": [
        "rows: 12",
        "money: 240",
        "from 0 has: 0",
        "refused: IntegrityError: CHECK constraint failed: money >= 0",
        "undone: RefusedError: ann has 70, not 90",
        "the shop has: 30 and ann: 70",
        "replicas are equal: True",
    ],
}


DEMOS = ("failover", "booking", "meeting", "ordering", "partition", "upgrade")  # test_demos.py


def run(name, *words, **environment):
    return subprocess.run(
        [sys.executable, "-m", f"examples.{name}", *words],
        env=surroundings(**environment),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


def said(done):
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return [_without_time(line) for line in lines]


def _without_time(line):
    head, colon, tail = line.rpartition(": ")
    return f"{head}: N ms" if colon and tail.endswith(" ms") and tail[:-3].isdecimal() else line


def alive(mark):
    """Processes that have ``mark`` on their command line."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in words:
            found.append((place.name, words))
    return found


def test_every_example_is_here():
    programs = {path.stem for path in EXAMPLES.glob("*.py")} - {"__init__", "nodes", "stage", "wire", "writers"}
    assert programs == set(SAID) | set(DEMOS)


@pytest.mark.parametrize("name", [name if name in ("account", "hello", "sql") else only_full(name) for name in SAID])
def test_by_itself(name, tmp_path):
    assert said(run(name, TMPDIR=str(tmp_path))) == SAID[name]
    assert not alive(str(tmp_path))
    assert not list(tmp_path.iterdir())  # nothing is left behind


def test_on_a_running_cluster_and_more_than_once(ports, tmp_path):
    with processes(ports(3), tmp_path, OBJECTS) as cluster:
        at = cluster.at("n1", "n2", "n3")
        for name in ("hello", "travel", "fanout", "oneway", "own"):
            assert said(run(name, "--at", at)) == SAID[name]
        for name in ("travel", "fanout", "oneway"):
            assert said(run(name, OBO_AT=at)) == SAID[name]
        assert said(run("own", "--at", at)) == ["{'coffee': 2, 'tea': 4}"]
        cluster.stop()
        assert judged(cluster).delivered


def test_a_wrong_cluster_is_one_line_that_says_so(ports, tmp_path):
    done = run("own", "--at", "nowhere")
    assert done.returncode == 1 and "'nowhere' is no address: write host:port" in done.stderr
    assert "Traceback" not in done.stderr
    with processes(ports(1), tmp_path, '[objects.bank]\nclass = "objects.bank:Bank"\n') as cluster:
        done = run("own", "--at", cluster.at("n1"))
    assert done.returncode == 1 and "no object 'poll'" in done.stderr and "examples/cluster.toml" in done.stderr


def test_help_says_what_it_is():
    done = run("fanout", "--help")
    assert done.returncode == 0 and "Hundreds of calls" in done.stdout and "--at" in done.stdout


LONG = """
import time
from examples.nodes import running
with running() as addresses:
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("when", ["starting", "up"])
def test_ctrl_c_leaves_nothing_behind(tmp_path, when, number):
    program = subprocess.Popen(
        [sys.executable, "-c", LONG],
        env=surroundings(TMPDIR=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,  # a terminal sends Ctrl-C to all of them: see killpg
    )
    try:
        assert (program.stderr if when == "starting" else program.stdout).readline().startswith(when)
        if number == signal.SIGINT:
            os.killpg(program.pid, number)
        else:
            program.send_signal(number)
        _, err = program.communicate(timeout=PATIENCE)
        assert program.returncode == 130, err
        assert "stopped" in err and "Traceback" not in err
        assert not alive(str(tmp_path)) and not list(tmp_path.iterdir())
    finally:
        program.kill()
        program.wait()
