"""Which tests a tier runs (tests.tiers)."""

from pathlib import Path

import pytest

from tests.tiers import mark_those_that_rest, together

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


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/analytics/test_jobs.py::test_a[1]", "tests/analytics"),
        ("tests/cluster/sql/test_mixes.py::test_a[b::c]", "tests/cluster/sql/test_mixes.py"),
        ("tests/test_ports.py::test_a", "tests/test_ports.py"),
        ("tests/com/test_order.py::test_a[tests/analytics]", "tests/com/test_order.py"),
    ],
)
def test_what_shares_something_is_one_group(test, group):
    assert together(test) == group


def test_a_group_has_one_worker(pytester):
    """With pytest and pytest-xdist as they are installed."""
    ours = Path(__file__).parents[1]
    pytester.makeconftest(
        f"import sys\nsys.path.insert(0, {str(ours)!r})\nfrom tests.conftest import pytest_xdist_make_scheduler"
    )
    pytester.makeini("[pytest]")
    program = "import os, pathlib\nimport pytest\n"
    program += '@pytest.mark.parametrize("n", range(4))\ndef test_in(n):\n'
    program += '    pathlib.Path("ran", os.environ["PYTEST_XDIST_WORKER"]).touch()\n'
    pytester.mkdir("ran")
    for name in ("a", "b"):
        file = pytester.path / "tests" / "analytics" / f"test_{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(program)
    pytester.runpytest_subprocess("-n", "2", "--dist", "loadscope", "tests").assert_outcomes(passed=8)
    assert len(list((pytester.path / "ran").iterdir())) == 1
