"""Texts that PostgreSQL turns into a time of its own clock: 'now', 'today 12:00', wherever a text becomes a time.

In a statement such a text is refused (refuse_postgres). As a parameter it is sent as a text and nothing else: a column
of type text takes it, one of a time says that it is none. A cast would still make a time of it, so there it is refused.
A cast of anything else, a column or what is computed, is written so that the text is looked at when it is known:
``obo.timeless(x)::timestamptz``.
"""

import re
from collections.abc import Iterable
from typing import Final

from objects.sql.errors import DataError, shown
from objects.sql.postgres_casts import has_parts, has_types_of_users
from objects.sql.statement import Statement
from objects.sql.tokens import tokens

_LONGEST: Final = 160  # longer texts are no times
_BESIDE: Final = (
    r"now|today|tomorrow|yesterday|allballs|am|pm|t|z|at|on|zulu|utc|gmt|[ecmp][sd]t|ces?t|bst|ist|jst|msk|"
    r"[a-z_]+/[a-z_]+|mon|tues?|wed|thur?s?|fri|sat|sun|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
)
_CLOCK: Final = re.compile(
    rf"[^a-z]*(?:(?:{_BESIDE})[^a-z]+)*?(?:now|today|tomorrow|yesterday)(?:[^a-z]+(?:{_BESIDE}))*[^a-z]*", re.IGNORECASE
)
_TIMES: Final = re.compile(r"\b(?:timestamp|timestamptz|date|time|timetz)\b", re.IGNORECASE)


def is_clock(text: str) -> bool:
    return has_parts(text) or (len(text) <= _LONGEST and _CLOCK.fullmatch(text) is not None)


def check_params(statement: Statement, texts: Iterable[str]) -> None:
    """``texts``: parameters that look like such a time."""
    for text in texts:
        if statement.writes and (
            _TIMES.search(statement.run) or has_types_of_users(tokens(statement.plain, "postgres"))
        ):
            raise DataError(
                f"the parameter {text!r} is refused: each server would read it from its own clock: give a datetime, or "
                f"use now(); in: {shown(statement.text)}"
            )
