"""``obo sim``: outcomes, replay commands, mistakes, interruption."""

import json
import os
import shlex
import signal
import subprocess
import time

import pytest
from typer.testing import CliRunner

from framework.cli.commands import app
from framework.sim import batch
from framework.sim.run import run as run_seed
from framework.sim.verdict import Violation
from tests.cli.run_obo import COMMAND, obo, surroundings
from tests.sim.tran_mutants import TRAN_MUTANTS

FIELDS = ["seed", "requests", "delivered", "fast", "slow", "ordered", "duplicates", "violations"]
SMALL = ("--nodes", "3", "--objects", "2", "--clients", "2", "--calls", "2")


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_json_is_one_object_per_seed_in_order_whatever_the_number_of_workers():
    one = obo("sim", "--seeds", "3:15", "--json", "--jobs", "1", *SMALL)
    two = obo("sim", "--seeds", "3:15", "--json", "--jobs", "3", *SMALL)
    assert one.returncode == two.returncode == 0, one.stderr + two.stderr
    assert one.stdout == two.stdout  # A11, across processes
    assert [o["seed"] for o in lines(one)] == list(range(3, 15))
    assert all(list(o) == FIELDS for o in lines(one))
    assert all(o["requests"] >= o["delivered"] > 0 for o in lines(one))
    assert two.stderr == ""


def test_a_summary_for_people_and_nothing_on_stderr_that_is_no_terminal():
    done = obo("sim", "--seeds", "0:3", "--jobs", "1", *SMALL)
    assert done.returncode == 0
    assert done.stdout.startswith("3 seeds: ")
    assert done.stdout.endswith("0 violations\n")
    assert done.stderr == ""


def test_options_reach_the_world_and_faults_can_be_left_out():
    def outcome(*words):
        return CliRunner().invoke(app, ["sim", "--seed", "7", "--json", *words, *SMALL]).stdout

    assert len({outcome(), outcome("--no-faults"), outcome("--conflict", "100%"), outcome("--ucast", "1")}) > 2
    assert outcome("--conflict", "100%") == outcome("--conflict", "1.0")
    assert json.loads(outcome("--conflict", "0"))["ordered"] == 0


def test_the_level_of_faults_reaches_the_world_and_a_wrong_one_is_told():
    def outcome(*words):
        return CliRunner().invoke(app, ["sim", "--seed", "16", "--json", *words]).stdout

    assert outcome("--faults", "none") == outcome("--no-faults")
    assert outcome("--faults", "links") == outcome()
    assert len({outcome(), outcome("--no-faults"), outcome("--faults", "all")}) == 3
    wrong = obo("sim", "--seed", "7", "--faults", "some")
    assert wrong.returncode == 2 and "--faults some: write none, links, group, all" in wrong.stderr


def test_traces_are_written_and_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        assert obo("sim", "--seeds", "4:6", "--jobs", "2", "--trace", tmp_path / name, *SMALL).returncode == 0
    names = sorted(str(f.relative_to(tmp_path / "a")) for f in (tmp_path / "a").rglob("*") if f.is_file())
    assert names == [f"{seed}/n{n}.jsonl" for seed in (4, 5) for n in (1, 2, 3)]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.fixture
def broken(monkeypatch):
    """Seeds that are a multiple of 3 break a rule, 5 and 10 crash."""

    def run(seed, options):
        if seed in (5, 10):
            raise KeyError("nobody\nhere")
        done = run_seed(seed, options)
        if seed % 3 == 0:
            done.verdict.violations.append(Violation("A3", "the wrong way round"))
        return done

    monkeypatch.setattr(batch, "run", run)
    return lambda *words: CliRunner().invoke(app, ["sim", "--jobs", "1", *SMALL, *words])


def test_a_violation_is_told_with_the_exact_command_that_replays_it(broken):
    done = broken("--seeds", "2:5", "--conflict", "30%", "--no-faults")
    assert done.exit_code == 1
    assert "seed 3: A3: the wrong way round" in done.stdout
    command = next(line for line in done.stdout.splitlines() if "replay" in line).partition("replay: ")[2]
    said = shlex.split(command)
    assert said[:4] == ["obo", "sim", "--seed", "3"]
    assert said[4:] == [*SMALL[:4], "--conflict", "30%", *SMALL[4:], "--no-faults"]
    assert "3 seeds: " in done.stdout  # the others went on
    assert obo(*said[1:]).returncode == 0  # it is a command that runs


def test_a_crash_is_an_outcome_of_its_seed(broken):
    done = broken("--seeds", "4:6")
    assert done.exit_code == 1
    assert "seed 5: crashed: KeyError: 'nobody\\nhere' (" in done.stdout
    assert "test_sim.py" in done.stdout  # where it happened
    assert "obo sim --seed 5" in done.stdout
    assert "1 crash" in done.stdout
    assert "Traceback" not in done.output


def test_who_replays_a_crash_sees_all_of_it(broken, monkeypatch):
    monkeypatch.setattr("framework.cli.sim.run_seed", batch.run)
    done = broken("--seed", "5")
    assert done.exit_code == 1
    assert "seed 5: crashed: KeyError" in done.stdout
    assert "Traceback (most recent call last)" in done.stderr


def test_json_tells_violations_and_crashes(broken):
    done = broken("--seeds", "3:6", "--json")
    assert done.exit_code == 1
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [o["violations"] and o["violations"][0]["rule"] for o in told] == ["A3", [], "crash"]
    assert told[0]["violations"] == [{"rule": "A3", "text": "the wrong way round"}]
    assert "obo sim --seed 3" in done.stderr


def test_of_many_violations_of_one_seed_the_first_are_told(broken, monkeypatch):
    def run(seed, options):
        done = run_seed(seed, options)
        done.verdict.violations += [Violation("A4", f"number {n}") for n in range(14)]
        return done

    monkeypatch.setattr(batch, "run", run)
    done = broken("--seeds", "7:9", "--most", "1")
    assert done.stdout.count("A4: number") == 10
    assert "seed 7: and 4 more; the replay tells all" in done.stdout
    assert broken("--seed", "7").stdout.count("A4: number") == 14


def test_it_stops_after_so_many_bad_seeds(broken):
    done = broken("--seeds", "0:100", "--most", "2")
    assert done.exit_code == 1
    assert "seed 3:" in done.stdout
    assert "seed 5:" not in done.stdout
    assert "4 seeds: " in done.stdout
    assert "stopped at 2 bad seeds, 96 not run" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--seeds 5:2", "--seeds 5:2 holds no seed: the second number must be higher than the first"),
        ("--seeds 5:5", "holds no seed"),
        ("--seeds x", "--seeds x: write FIRST:LAST, for example --seeds 0:500 (500 not included)"),
        ("--seeds -3:5", "write FIRST:LAST"),
        ("--seeds 1:2:3", "write FIRST:LAST"),
        ("--seed 1:2", "--seed 1:2: write one whole number, for example --seed 7 (--seeds 0:500 for many)"),
        ("--seed -1", "write one whole number"),
        ("--seed 1 --seeds 1:2", "--seed and --seeds: give one of them"),
        ("--conflict 7", "--conflict 7: write a share from 0 to 1, for example 0.3 or 30%; did you mean 7%?"),
        ("--conflict 101%", "write a share from 0 to 1, for example 0.3 or 30%"),
        ("--conflict nan", "write a share"),
        ("--ucast -0.1", "--ucast -0.1: write a share"),
        ("--nodes 0", "--nodes 0: write a whole number from 1 to 64"),
        ("--nodes x", "--nodes x: write a whole number"),
        ("--keys -1", "--keys -1: write a whole number from 0"),
        ("--objects 1.5", "--objects 1.5: write a whole number"),
        ("--clients 0", "--clients 0: write a whole number from 1"),
        ("--calls 0", "--calls 0: write a whole number from 1"),
        ("--jobs 0", "--jobs 0: write a whole number from 1"),
        ("--most 0", "--most 0: write a whole number from 1"),
        ("--trace /dev/null/x", "--trace /dev/null/x: cannot make this directory"),
        ("--show", "--show and --svg draw one run: name it, as in obo sim --seed 7"),
        ("--seed 7 --show --json", "--show and --json both want stdout"),
        ("--seed 7 --only c1", "add --show or --svg FILE"),
        ("--seed 7 --show --from x", "--from x: write a time, for example 12.5"),
        ("--seed 7 --show --only nobody", "nothing to draw: no request fits --only nobody"),
        ("--seed 7 --svg nowhere/x.svg", "--svg nowhere/x.svg: not a file that can be written"),
    ],
)
def test_mistakes_are_one_line(words, told):
    """In this process: main() is the frame that makes a line of an error, and test_conflicts.py tests it."""
    done = CliRunner().invoke(app, ["sim", *words.split()])
    assert str(done.exception).count("\n") == 0
    assert told in str(done.exception)
    assert type(done.exception).__name__ == "BadRequest"


def test_a_mistake_ends_with_2():
    done = obo("sim", "--seeds", "5:2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("obo: error: --seeds 5:2")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("jobs", ["1", "6"])  # with 6, some are still starting when the first outcome is there
def test_ctrl_c_ends_everything_cleanly(jobs):
    words = [*COMMAND, "sim", "--seeds", "0:1000000", "--json", "--jobs", jobs, *SMALL]
    with subprocess.Popen(
        words, env=surroundings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        first = process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
        out, err = process.stdout.read(), process.stderr.read()
        process.wait(60)
    assert json.loads(first)["seed"] == 0
    assert process.returncode == 130
    assert [json.loads(line)["seed"] for line in out.splitlines()] == list(range(1, len(out.splitlines()) + 1))
    assert "interrupted; of 1000000 seeds these were done: " in err
    assert f"{len(out.splitlines()) + 1} seed" in err
    assert "Traceback" not in err
    assert gone(process.pid), "a worker is left"


def gone(group):
    """Python's own helper of worker processes ends a moment after its parent."""
    for _ in range(1200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_show_draws_the_run_and_svg_writes_it(tmp_path):
    done = obo("sim", "--seed", "7", "--show", "--svg", tmp_path / "7.svg", "--only", "c1")
    assert done.returncode == 0, done.stderr
    assert "Seed 7: " in done.stdout
    assert "c1/1" in done.stdout
    assert "c2/1" not in done.stdout
    assert (tmp_path / "7.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_a_failing_world_is_shrunk_and_replayed(tmp_path):
    file = tmp_path / "small.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*TRAN_MUTANTS["what is held keeps nobody out"])
        shrunk = CliRunner().invoke(app, ["sim", "--seed", "0", "--transactions", "--shrink", "--save", str(file)])
        assert shrunk.exit_code == 1
        assert shrunk.stdout.startswith("seed 0: A4: ")
        assert shrunk.stdout.endswith(f"  replay: obo sim --replay {file}\n")
        done = CliRunner().invoke(app, ["sim", "--replay", str(file)])
        assert done.exit_code == 1
        assert done.stdout.splitlines()[0] == shrunk.stdout.splitlines()[0]
        assert f"  replay: obo sim --replay {file}\n" in done.stdout
        assert "the same trace as when the file was written" in done.stdout
    mended = CliRunner().invoke(app, ["sim", "--replay", str(file)])
    assert mended.exit_code == 0
    assert "another trace than when the file was written, with A4: " in mended.stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--seed", "7", "--shrink"], "seed 7 is clean"),
        (["--seeds", "0:9", "--shrink"], "--seed N"),
        (["--seed", "7", "--save", "7.json"], "add --shrink"),
        (["--replay", "nowhere.json"], "No such file"),
        (["--replay", "nowhere.json", "--transactions"], "holds a whole world"),
        (["--replay", "nowhere.json", "--seed", "7"], "holds a whole world"),
    ],
)
def test_mistakes_of_shrinking_and_replaying_are_told(words, text):
    done = obo("sim", *words)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stderr.count("\n") == 1
