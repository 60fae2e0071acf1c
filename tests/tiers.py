"""Decide which tests each tier runs.

``make test`` runs every test without the mark ``full``; ``make test-all`` runs all of them. A test marked
``rotating(share)`` is one of many of a kind, such as one mutant of the protocol: ``make test`` runs each
``share``-th of them, beginning with another one at each commit, so that every one runs within ``share`` commits.
"""

import subprocess
from collections import defaultdict
from pathlib import Path, PurePath
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

HERE = Path(__file__).parent

first_tier = False  # whether this run leaves out the mark ``full``


def examples(few: int, many: int) -> int:
    """Return how many examples hypothesis tries: ``few`` in make test, ``many`` otherwise."""
    return few if first_tier else many


def only_full(*values: Any, id: str | None = None) -> Any:
    """Return parameters that run in make test-all only: another one of the test shows its capability."""
    return pytest.param(*values, id=id, marks=pytest.mark.full)


def worlds(few: int, many: int, first: int = 0) -> list[Any]:
    """Return ranges of seeds as parameters: each tier runs the ``few`` first, the full one all ``many``."""
    rest = range(first + few, first + many)
    return [
        pytest.param(range(first, first + few), id=f"{first}-{first + few - 1}"),
        only_full(rest, id=f"{rest[0]}-{rest[-1]}"),
    ]


def commit_number() -> int:
    """Return how many commits lead to this one; 0 in a tree without history."""
    try:
        done = subprocess.run(
            ["git", "rev-list", "--count", "--first-parent", "HEAD"], cwd=HERE, capture_output=True, text=True
        )
    except OSError:
        return 0
    return int(done.stdout) if done.returncode == 0 else 0


def mark_those_that_rest(items: list[pytest.Item], turn: int) -> None:
    """Give the mark ``full`` to each rotating test whose turn it is not."""
    kinds: defaultdict[str, int] = defaultdict(int)
    for item in items:
        mark = item.get_closest_marker("rotating")
        if mark is None:
            continue
        (share,) = mark.args
        kind = item.nodeid.split("[")[0]
        if kinds[kind] % share != turn % share:
            item.add_marker(pytest.mark.full)
        kinds[kind] += 1


def together(test: str) -> str:
    """Name what one worker of pytest-xdist runs as a whole: the tests of the Spark session, or those of a module, which
    may share nodes and servers."""
    place = PurePath(test.split("::")[0])
    return "tests/analytics" if PurePath("tests/analytics") in place.parents else str(place)


#: Rooms whose tests wait for processes and clocks come first, so that the quick ones fill the gaps at the end.
FIRST = ("analytics", "cluster", "load", "objects", "cli", "orb", "examples", "bench", "store", "sim")


def turn_of(test: str) -> int:
    """Return the place of a test's room in the order in which workers begin modules."""
    room = PurePath(test.split("::")[0]).parts[1]
    return FIRST.index(room) if room in FIRST else len(FIRST)


class Together(LoadScopeScheduling):
    """Give the tests of a group to one worker, in the order of ``turn_of``. The mark xdist_group would not do so:
    pytest-xdist 3.8 writes it into the id of a test, which pytest 9.2 does not heed, without a word."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)
