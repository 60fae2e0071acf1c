"""``obo explore``: what it tells, the files it writes, mistakes."""

import pytest

from framework.com.order import Order
from framework.sim.explore.scenario import load, names
from tests.cli.run_obo import obo_here

SCENARIO = load("two-of-two").text()


@pytest.fixture
def explore(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return lambda *words: obo_here(monkeypatch, capsys, "explore", *words)


def test_what_was_tried_is_told(explore):
    done = explore("two-of-two")
    assert done.returncode == 0
    assert done.stdout.startswith(
        "two-of-two: no schedule is wrong, everything was tried: dfs, 22 schedules, 32 states, 3 different ends, "
    )
    assert done.stderr == ""


def test_all_scenarios_are_listed(explore):
    assert [line.split()[0] for line in explore("--list").stdout.splitlines()] == names()


def test_a_file_is_a_scenario_and_families_are_several(explore, tmp_path):
    (tmp_path / "mine.txt").write_text(SCENARIO)
    assert explore("mine.txt").stdout.startswith("mine: no schedule is wrong")
    done = explore("--family", "1:3", "--seconds", "1")
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["family1", "family2"]


def test_a_schedule_that_is_wrong_is_told_written_and_replayed(explore, monkeypatch, tmp_path):
    with monkeypatch.context() as broken:
        broken.setattr(Order, "_agreeable", lambda self, entry: True)
        done = explore("two-of-two", "--svg", "two.svg")
        assert done.returncode == 1
        assert "two-of-two: a schedule of " in done.stdout
        assert "n1 client a" in done.stdout
        assert "replay: obo explore --replay out/explore/two-of-two.txt" in done.stdout
        assert "</svg>" in (tmp_path / "two.svg").read_text()
        again = explore("--replay", "out/explore/two-of-two.txt", "--show")
        assert again.returncode == 1
        told = [line for line in done.stdout.splitlines() if line.startswith("  ") and "replay" not in line]
        assert [line for line in told if line not in again.stdout.splitlines()] == []
    assert (tmp_path / "out/explore/two-of-two.txt").read_text().startswith(SCENARIO)
    broken_no_more = explore("--replay", "out/explore/two-of-two.txt")
    assert broken_no_more.returncode in (0, 2)  # or the steps cannot happen


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name one scenario, or give --family SEED, or --replay FILE"),
        (["two", "--family", "3"], "name one scenario"),
        (["three"], "no scenario 'three': name a file, or one of batching, "),
        (["two", "--strategy", "bfs"], "--strategy bfs: write dfs, delay:K or pct:D"),
        (["two", "--strategy", "pct:0"], "--strategy pct:0: write dfs"),
        (["two", "--seconds", "0"], "--seconds 0: write a whole number"),
        (["--family", "few"], "--family few: write a seed, for example 7, or FIRST:LAST"),
        (["--family", "1:3", "--show"], "draw one run"),
        (["--replay", "none.txt"], "--replay none.txt: cannot be read"),
    ],
)
def test_mistakes(explore, words, says):
    done = explore(*words)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
