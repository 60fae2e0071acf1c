"""Which tests a tier runs (tests.tiers)."""

import pytest

from tests.tiers import mark_those_that_rest

pytest_plugins = ["pytester"]

MANY = """
import pytest

@pytest.mark.rotating({share})
@pytest.mark.parametrize("n", range(10))
def test_many(n):
    assert True

def test_other():
    assert True
"""


@pytest.mark.parametrize("share", [1, 3, 4, 20])
def test_rotating_tests_all_have_their_turn(pytester, share):
    pytester.makeini("[pytest]\nmarkers =\n  full:\n  rotating(share):\n")
    items, _ = pytester.inline_genitems(pytester.makepyfile(MANY.format(share=share)))
    ran = []
    for turn in range(7, 7 + share):
        for item in items:
            item.own_markers = [mark for mark in item.own_markers if mark.name != "full"]
        mark_those_that_rest(items, turn)
        ran.append([item.name for item in items if item.get_closest_marker("full") is None])
    assert all("test_other" in names for names in ran)
    many = sorted(name for names in ran for name in names if name != "test_other")
    assert many == sorted(f"test_many[{n}]" for n in range(10))
