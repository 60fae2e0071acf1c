"""``obo fig9`` as a user runs it, in a process of its own, on a workload that takes a second."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

SMALL = ("--set", "transactions=1", "--seeds", "1", "--step", "100")


def command(*words):
    return [sys.executable, "-m", "framework.cli.main", "fig9", *map(str, words)]


def environment():
    return {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": os.getcwd()}


def obo(*words, cwd=None):
    return subprocess.run(
        command(*words), cwd=cwd, env=environment(), capture_output=True, encoding="utf-8", check=False
    )


def test_it_writes_the_picture_and_the_numbers(tmp_path):
    done = obo("--out", tmp_path / "f.png", "--json", tmp_path / "f.json", "--jobs", "2", *SMALL)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    said = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))
    assert said["settings"]["transactions"] == 1
    assert [len(c["points"]) for c in said["curves"]] == [2, 2, 2]
    assert "ucast 50 %" in done.stdout
    assert "66.3" in done.stdout


def test_without_numbers_and_as_another_picture(tmp_path):
    done = obo("--out", tmp_path / "f.svg", "--jobs", "1", *SMALL)
    assert done.returncode == 0, done.stderr
    assert b"<svg" in (tmp_path / "f.svg").read_bytes()
    assert os.listdir(tmp_path) == ["f.svg"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seeds", "0"), "--seeds 0: write a whole number from 1"),
        (("--seeds", "many"), "--seeds many: write a whole number"),
        (("--step", "0"), "--step 0: write a whole number from 1 to 100"),
        (("--step", "101"), "--step 101"),
        (("--jobs", "0"), "--jobs 0"),
        (("--out", "nowhere/f.png"), "nowhere/f.png cannot be written: No such file or directory"),
        (("--json", "nowhere/f.json"), "nowhere/f.json cannot be written"),
        (("--out", "."), "cannot be written: Is a directory"),
        (("--out", "f.docx"), "no picture can be written as .docx; known: "),
        (("--out", "f", "--json", "./f"), "need two files"),
        (("--set", "conflict=1"), "--set conflict=1: no such setting; known: nodes, objects"),
        (("--set", "nodes=x"), "--set nodes x: write a whole number"),
        (("--set", "nodes=3"), "9 objects on 3 nodes: each has one or two"),
    ],
)
def test_mistakes_are_one_line_before_anything_runs(tmp_path, words, said):
    done = obo(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("obo: error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_without_matplotlib_it_says_what_to_install(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')")
    where = {**environment(), "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getcwd()}"}
    done = subprocess.run(
        command("--out", tmp_path / "f.png"), env=where, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "obo: error: drawing needs matplotlib: pip install 'obo[plot]'\n"


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return file.read().split()
    except FileNotFoundError:
        return []


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="finds the workers in /proc")
def test_ctrl_c_ends_all_of_it_at_once(tmp_path):
    running = subprocess.Popen(
        command("--out", tmp_path / "f.png", "--jobs", "2", "--seeds", "1000"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while len(children(running.pid)) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.5)  # for workers at work; it may be interrupted from now on
    workers = children(running.pid)
    os.killpg(running.pid, signal.SIGINT)
    out, error = running.communicate(timeout=60)
    assert running.returncode == 130
    assert out == ""
    assert error.strip() == "interrupted; nothing was written"
    assert os.listdir(tmp_path) == []
    assert len(workers) >= 2
    until = time.monotonic() + 60
    while any(os.path.exists(f"/proc/{pid}") for pid in workers):
        assert time.monotonic() < until, "workers are left over"
        time.sleep(0.05)
