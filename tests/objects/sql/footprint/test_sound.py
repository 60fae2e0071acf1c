"""Statements with compatible footprints may change places: asked of SQLite itself, for random schemas and statements.

And the question is sharp enough: with a rule left out, a pair is found that may not. Without the rules of foreign keys
SQLite itself still tells what they reach, so those are left out for PostgreSQL (test_pairs.py).
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework import canonical
from objects.sql.footprint import same, touched
from objects.sql.footprint.effects import Effects
from objects.sql.footprint.judge import Judge
from tests.objects.sql.footprint.images import Sqlite, disorder
from tests.objects.sql.footprint.world import World
from tests.tiers import examples


@settings(derandomize=True, deadline=None, max_examples=examples(100, 300))
@given(chance=st.randoms(use_true_random=False))
def test_compatible_statements_may_change_places(sqlite_images: Sqlite, chance: Random) -> None:
    assert disorder(sqlite_images, World(chance)) == ""


def nothing(*_: Any) -> None:
    pass


RULES: list[tuple[str, object, str, Callable[..., Any]]] = [
    ("values of unique constraints are taken", Effects, "take", nothing),
    ("values of unique constraints are given back", Effects, "give_back", nothing),
    ("UPDATE of a primary key", Judge, "_moved", lambda *_: []),
    ("what columns are in UPDATE", Judge, "_follow", nothing),
    ("subqueries", Judge, "_rest", nothing),
    ("triggers and views", touched, "_compare", nothing),
    ("texts that are equal for a collation", same, "_folded", canonical),
]


@pytest.mark.rotating(4)
@pytest.mark.parametrize(("holder", "name", "instead"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_a_rule_that_is_left_out_is_missed(
    sqlite_images: Sqlite, holder: Any, name: str, instead: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holder, name, instead)
    assert any(disorder(sqlite_images, World(Random(seed))) for seed in range(1500))
