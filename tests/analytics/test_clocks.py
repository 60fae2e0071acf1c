"""Offsets of clocks from the least delays both ways; and the comparison of two runs: arithmetic alone."""

import random

import pytest

from framework.analytics.clocks import estimate, slack
from framework.analytics.compare import differences, welch


def least(offsets, delay, seed=0):
    chance = random.Random(seed)
    return {
        (a, b): offsets[b] - offsets[a] + delay * chance.uniform(1, 1.5) for a in offsets for b in offsets if a != b
    }


def test_a_clock_that_is_ahead_is_found_within_the_error():
    true = {"n1": 0.0, "n2": 3.0, "n3": -0.5, "client 0": 1.0}
    found = {one.node: one for one in estimate(least(true, 0.001))}
    for node, offset in true.items():
        assert found[node].steady
        assert abs(found[node].offset - offset) <= found[node].error + 1e-12
    assert found["n2"].of == "n1"
    assert slack(list(found.values())) < 0.01


def test_clocks_that_may_agree_are_left_alone():
    found = estimate(least({"n1": 0.0, "n2": 0.0002}, 0.001))
    assert [one.offset for one in found] == [0.0, 0.0]


def test_a_clock_that_was_set_meanwhile_is_told_and_not_corrected():
    """Before it was set messages to it seem to take -2 s, and afterwards those from it do."""
    found = {one.node: one for one in estimate({("n1", "n2"): -2.0, ("n2", "n1"): -2.0})}
    assert not found["n2"].steady
    assert found["n2"].offset == 0.0


def test_one_way_traffic_tells_nothing():
    assert estimate({("n1", "n2"): 5.0}) == []


def test_welch_is_that_of_the_textbooks():
    """n = 5 and 6; variances 2.5 and 5.6, t at 8 degrees of freedom 2.306."""
    change, low, high = welch([1, 2, 3, 4, 5], [3, 5, 6, 6, 8, 10])
    assert change == pytest.approx(3.3333, abs=1e-4)
    half = 2.306 * (2.5 / 5 + 5.8666667 / 6) ** 0.5
    assert (low, high) == pytest.approx((change - half, change + half), abs=1e-3)


def test_the_interval_holds_the_true_difference_most_of_the_time():
    chance = random.Random(7)
    held = 0
    for _ in range(400):
        a, b = [chance.gauss(10, 2) for _ in range(20)], [chance.gauss(11, 3) for _ in range(20)]
        _, low, high = welch(a, b)
        held += low <= 1.0 <= high
    assert 0.92 <= held / 400 <= 0.98


def rows(latency, chance, name=("bank", "deposit"), rate=100.0):
    values = [latency * chance.uniform(0.9, 1.1) for _ in range(20)]
    return [
        {"object": name[0], "method": name[1], "rate": rate, "mean": v, "p50": v, "p95": v, "p99": v} for v in values
    ]


def test_what_got_slower_is_worse_and_equal_runs_are_not():
    chance = random.Random(1)
    slower = {d.figure: d.word for d in differences(rows(0.01, chance), rows(0.02, chance))}
    assert slower["p50"] == "worse" and slower["rate"] == "no difference seen"
    same = [d.word for d in differences(rows(0.01, chance), rows(0.01, chance))]
    assert same.count("no difference seen") >= 3


def test_that_a_method_is_called_less_often_is_no_fault_but_that_all_are():
    chance, every = random.Random(1), ("", "")
    for name, words in ((("bank", "deposit"), ("fewer calls", "more calls")), (every, ("worse", "better"))):
        more, fewer = rows(0.01, chance, name), rows(0.01, chance, name, rate=12.0)
        for found, word in ((differences(more, fewer), words[0]), (differences(fewer, more), words[1])):
            assert [d.word for d in found if d.figure == "rate"] == [word]
