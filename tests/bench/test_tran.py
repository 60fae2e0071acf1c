"""``obo bench tran`` measures what it says. No test here judges a time."""

import json

import pytest

from framework.bench.tran import FANS, SHARES, TARGETS, Plan, _delays, _fan, _single
from tests.cli.run_obo import obo


@pytest.mark.full
def test_it_measures_what_it_says(tmp_path):
    file = tmp_path / "tran.json"
    done = obo("bench", "tran", "--quick", "--rounds", 1, "--json", file, timeout=200)
    assert done.returncode == 0, done.stderr
    said = json.loads(file.read_bytes())
    assert set(said["ratios"]) == set(TARGETS)
    assert said["ratios"]["two_object_over_two_calls"] > 0 and said["ratios"]["single_over_plain"] > 0
    assert [row["share"] for row in said["raw"]["contention"]] == list(SHARES)
    assert all(row["committed"] > 0 for row in said["raw"]["contention"])
    hot = said["raw"]["contention"][-1]
    assert said["ratios"]["hot_aborts_share"] == round(hot["aborted"] / (hot["aborted"] + hot["committed"]), 4)


@pytest.mark.full
def test_a_single_call_is_measured_with_and_without():
    plain, one = _single(Plan(requests=5), 0, lambda _: None)
    assert plain > 0 and one > 0


def test_a_part_is_answered_after_more_message_delays_than_a_one_way_call():
    """The outcome comes between, and the next in line waits for it."""
    lone, line = ([_delays(kind, clients) for kind in FANS] for clients in (1, 5))
    assert lone[0] < lone[1] and line[0] < line[1] and lone[1] < line[1]


@pytest.mark.full
def test_calls_that_nobody_waits_for_are_measured():
    oneway, part = (_fan(Plan(requests=2), kind, 0) for kind in FANS)
    assert 0 < oneway.bytes < part.bytes and oneway.seconds > 0 and part.seconds > 0
