"""Texts are cut as the databases cut them: no second statement hides behind a quote or a comment."""

import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from framework import BadRequest
from objects.sql.statement import Statement, understand
from objects.sql.tokens import Dialect, tokens
from tests.tiers import examples

PIECES = [
    "'", "''", '"', '""', "`", "[", "]", "--", "/*", "*/", "\n", " ", ";", "SELECT 2", "1", "a", "$", "$$", "$a$", "E'",
    "\\", "x'", "U&'", "(", ")", ",", "::", ":", "-", "/", "*", "\ufeff", "é", "e", ".", "0x", "?", "_", "N'", "\r",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=12).map(lambda pieces: "SELECT 1 " + "".join(pieces))


def understood(text: str, dialect: Dialect) -> Statement | None:
    try:
        return understand(text, dialect)
    except BadRequest:
        return None


def complaint(perform: Callable[[], object]) -> str:
    try:
        perform()
    except (sqlite3.Error, sqlite3.Warning, psycopg.Error) as error:
        return str(error)
    return ""


@settings(derandomize=True, deadline=None, max_examples=examples(1000, 3000))
@given(text=texts)
def test_sqlite_finds_one_statement_as_well(text: str) -> None:
    found = understood(text, "sqlite")
    if found is None or found.named:
        return
    made = sqlite3.connect(":memory:")
    said = complaint(lambda: made.execute(found.run, [1] * found.count))
    assert "one statement" not in said and "bindings" not in said and not said.startswith("unrecognized token: \"'")


@settings(derandomize=True, deadline=None, max_examples=examples(200, 600), suppress_health_check=list(HealthCheck))
@given(text=texts)
def test_postgres_finds_one_statement_as_well(postgres: "psycopg.Connection[Any]", text: str) -> None:
    found = understood(text, "postgres")
    if found is None or found.named:
        return
    said = complaint(lambda: postgres.execute(found.run, [1] * found.count, prepare=True))
    assert "multiple commands" not in said and "unterminated" not in said and "placeholder" not in said


def test_positions_and_values() -> None:
    text = """a "b""c" 'd''e' [f] :g"""
    found = tokens(text, "sqlite")
    assert [t.value for t in found] == ["a", 'b"c', "d'e", "f", "g"]
    assert [text[t.start : t.end] for t in found] == text.split(" ")
    assert [t.value for t in tokens("$x$a$$b$x$ $$c$$ e'd\\'e' N'f' /* /* */ */ G", "postgres")] == [
        "a$$b", "c", "e'd\\'e'", "f", "g",
    ]  # fmt: skip
