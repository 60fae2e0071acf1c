"""The tool that finds flaky tests, on pretend tests."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.full  # each test runs pytest with several workers

ROOT = Path(__file__).parent.parent

FLAKY = """
import pathlib

pytestmark = pytest.mark.full  # each test runs pytest with several workers

RUNS = pathlib.Path(__file__).with_name("runs")


def test_flaky(tmp_path):
    runs = RUNS.read_text() if RUNS.exists() else ""
    RUNS.write_text(runs + "x")
    (tmp_path / "node.log").write_text("what the node said")
    print("what the test said")
    assert runs != "x", "the second run\\nalways fails"


def test_stable(tmp_path):
    (tmp_path / "node.log").write_text("nothing of interest")
"""

SLOW = """
import pathlib, subprocess, sys, time


def test_fails():
    raise ValueError("at once")


def test_slow():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    pathlib.Path(__file__).with_name("pid").write_text(f"{child.pid}\\n")
    time.sleep(300)
"""

LEAVES = """
import subprocess, sys


def test_leaves():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
"""


@pytest.fixture
def stress(tmp_path):
    """Run the tool on a file of tests; return its exit code and what it has printed."""
    started = []

    def start(text, *options, tests=()):
        (tmp_path / "test_pretend.py").write_text(text)
        words = [sys.executable, "-m", "tests.stress", "--workers", "2", "--out", str(tmp_path / "out"), *options, "--"]
        words += ["--rootdir", str(tmp_path), str(tmp_path / "test_pretend.py"), *tests]
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


def run(process):
    said, _ = process.communicate(timeout=120)
    return process.returncode, said


def child(directory):
    """The process that the slow test has started, or 0 before it has."""
    path = directory / "pid"
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else 0


def table(said):
    """The part after the last round: each test with the lines below it."""
    return dict(re.findall(r"^(test_pretend\.py::\w+)\n((?:  .*\n)+)", said, re.MULTILINE))


def test_a_flaky_test_is_listed_and_a_stable_one_is_not(stress, tmp_path):
    code, said = run(stress(FLAKY, "--rounds", "2", "--seed", "7"))
    assert code == 1, said
    ((test, lines),) = table(said).items()
    assert test == "test_pretend.py::test_flaky"
    assert "failed in 1 of 2 runs" in lines
    assert "1 x AssertionError: the second run" in lines
    assert "1 of 2 tests failed at least once" in said
    seed, log = re.search(r"seed (\d+) +(\S+)", lines).groups()
    kept = (ROOT / log).read_text()
    assert "what the test said" in kept
    assert "always fails" in kept
    assert f"--stress-seed={seed} --hypothesis-seed={seed}" in kept
    assert [p.parent.name for p in tmp_path.rglob("out/**/node.log")] == ["test_flaky0"]


def test_stable_tests_pass(stress):
    code, said = run(stress(FLAKY, "--rounds", "2", tests=("-k", "not flaky")))
    assert (code, table(said)) == (0, {}), said
    assert "1 tests, 2 runs, no failure" in said


def test_copies_count_as_runs_of_one_test(stress):
    code, said = run(stress(FLAKY, "--rounds", "1", "--copies", "4", "--workers", "1"))
    assert code == 1, said
    ((test, lines),) = table(said).items()
    assert (test, "failed in 1 of 4 runs" in lines) == ("test_pretend.py::test_flaky", True)


def test_the_seed_decides_on_the_order(stress, tmp_path):
    tests = "\n".join(f"def test_{i}(): ROWS.open('a').write('{i} ')" for i in range(10))
    text = f"import pathlib\nROWS = pathlib.Path(__file__).with_name('rows')\n{tests}\n"
    orders = []
    for seed in "1", "2", "1":
        code, said = run(stress(text, "--rounds", "1", "--workers", "1", "--seed", seed))
        assert code == 0, said
        orders.append((tmp_path / "rows").read_text())
        (tmp_path / "rows").unlink()
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0].split()) == sorted(orders[1].split()) == list("0123456789")


def test_ctrl_c_ends_all_and_shows_the_table_so_far(stress, tmp_path):
    process = stress(SLOW, "--rounds", "3", "--seed", "1")
    said = ""
    while "ValueError" not in said:
        said += (line := process.stdout.readline())
        assert line, said
    while not (pid := child(tmp_path)):
        assert process.poll() is None, said
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    code, rest = run(process)
    assert code == 1, said + rest
    assert "interrupted" in rest
    assert table(rest).keys() == {"test_pretend.py::test_fails"}
    assert not psutil.pid_exists(pid)
    assert not psutil.pid_exists(child(tmp_path))


def test_a_test_that_hangs_is_listed(stress, tmp_path):
    code, said = run(stress(SLOW, "--rounds", "1", "--hang", "10"))
    assert code == 1, said
    assert "has not ended" in table(said)["test_pretend.py::test_slow"]
    assert not psutil.pid_exists(child(tmp_path))


def test_a_process_that_is_left_behind_is_listed_with_its_test(stress):
    code, said = run(stress(LEAVES, "--rounds", "1"))
    assert code == 1, said
    assert "left a process behind" in table(said)["test_pretend.py::test_leaves"]


def test_time_is_bounded(stress):
    code, said = run(stress(SLOW, "--rounds", "3", "--minutes", "0.1", tests=("-k", "not fails")))
    assert "0.1 minutes are over" in said
    assert code == 0, said
