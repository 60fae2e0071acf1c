"""``obo demo --world``: the story a newcomer reads, and that it is true."""

import re

import pytest
from typer.testing import CliRunner

from framework.cli.commands import app
from framework.cli.demo_world import Demo
from framework.sim import host_objects
from tests.cli.run_obo import obo


def demo(*words):
    return CliRunner().invoke(app, ["demo", "--world", "--fast", *words])


def test_it_tells_the_whole_story():
    done = obo("demo", "--world", "--fast")
    assert done.returncode == 0, done.stderr
    for told in (
        "ann          calls counter: ann/1 increment(5), from n1 to n1, n2, n3",
        "compatible",
        "which conflicts",
        "takes back",
        "RefusedError: shop has",
        "n1 and n3 are cut from each other",
        "keeps gina/1 deposit('shop', 5): no agreement, bank@n3 not heard of",
        "the cut heals",
        "n2 stands still",
        "Equal on all replicas.",
        "0 violations.",
    ):
        assert told in done.stdout, told
    assert max(map(len, done.stdout.splitlines())) <= 120


def test_one_seed_one_story():
    assert demo("--seed", "5").stdout == demo("--seed", "5").stdout != demo("--seed", "6").stdout


@pytest.mark.parametrize("seed", range(1, 26))
def test_it_holds_for_any_seed(seed):
    done = demo("--seed", str(seed))
    assert done.exit_code == 0, done.stdout
    assert "WRONG" not in done.stdout


def test_what_it_tells_of_the_order_is_what_happened():
    """The rows "performed, in this order" against the lines "performs"."""
    lines = demo("--seed", "1").stdout.splitlines()
    performed, rows = {}, {}
    for line in lines:
        found = re.match(r"\s+[\d.]+\s+(\w+@n\d) +performs (\w+/\d+)", line)
        if found:
            performed.setdefault(found[1], []).append(found[2])
        found = re.match(r" {11}(\w+@n\d) +((\w+/\d+ *)+)$", line)
        if found:
            rows.setdefault(found[1], []).extend(found[2].split())
    assert set(rows) == {f"{name}@n{n}" for name in ("counter", "bank") for n in (1, 2, 3)}
    for replica, row in rows.items():
        assert row == [i for i in performed[replica] if i in row]


def test_it_ends_with_1_if_the_states_differ(monkeypatch):
    real = host_objects.Hosts._perform

    def forgets(self, effect):
        if effect.replica == "counter@n2":
            return True, b"\xc0"
        return real(self, effect)

    monkeypatch.setattr(host_objects.Hosts, "_perform", forgets)
    done = demo()
    assert done.exit_code == 1
    assert "NOT EQUAL" in done.stdout
    assert "A7" in done.stdout


def test_it_sees_a_wrong_order():
    told = Demo(1, 0.0)
    told.play()
    visits = [v for v in told.narrator.picture.at["bank@n1"] if v.delivered is not None]
    first, second = next((a, b) for a in visits for b in visits if told.narrator.picture.conflict(a, b) and a is not b)
    assert told.narrator._judge([[first, second], [first, second]])
    assert not told.narrator._judge([[first, second], [second, first]])


def test_a_wrong_seed_is_one_line():
    done = obo("demo", "--world", "--seed", "x")
    assert done.returncode == 2
    assert done.stderr == "obo: error: --seed x: write a whole number from 0 to 1000000000000\n"
