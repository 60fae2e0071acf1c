"""An UPDATE or DELETE of PostgreSQL, cut into its clauses."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from objects.sql.tokens import Token

_AFTER_NAME: Final = ("set", "where", "using", "returning", "from")
_CONSTANT: Final = ("null", "true", "false")


class Change(msgspec.Struct):
    """``text`` is the whole statement; clauses are without their first word, empty where there is none."""

    verb: str
    target: str  # the table with its alias, as written
    table: str
    called: str  # what columns may be qualified with, as written
    values: str = ""
    sources: str = ""  # FROM or USING
    where: str = ""
    returning: str = ""
    computed: frozenset[str] = frozenset()  # columns whose new value depends on the row, or may


def change_of(text: str, found: Sequence[Token]) -> Change | None:
    """None if it is none, or cannot be cut."""
    if not found[0].is_("update", "delete"):
        return None
    verb = found[0].value
    at = 2 if verb == "delete" else 1
    first = at
    at += at < len(found) and found[at].is_("only")
    name, at = at, at + 1
    if name >= len(found):
        return None
    while at + 1 < len(found) and found[at].value == "." and found[at].sort == "op":
        name, at = at + 1, at + 2
    if not found[name].names():
        return None
    called = found[name]
    at += at < len(found) and found[at].value == "*"
    at += at < len(found) and found[at].is_("as")
    if at < len(found) and found[at].names() and not found[at].is_(*_AFTER_NAME):
        called, at = found[at], at + 1
    made = Change(
        verb, text[found[first].start : found[at - 1].end], found[name].value, text[called.start : called.end]
    )
    return _with_clauses(made, text, found, at)


def _with_clauses(made: Change, text: str, found: Sequence[Token], at: int) -> Change | None:
    starts = list(_clauses(found, at))
    if (starts[0][1] if starts else len(found)) != at:
        return None
    ends = [i for _, i in starts[1:]] + [len(found)]
    for (word, i), end in zip(starts, ends, strict=False):
        if i + 1 >= end:
            return None
        piece = text[found[i + 1].start : found[end - 1].end]
        if word == "set":
            made.values, made.computed = piece, frozenset(_computed(found[i + 1 : end]))
        elif word in ("from", "using"):
            made.sources = piece
        elif word == "where":
            made.where = piece
        else:
            made.returning = piece
    return made if made.values or made.verb == "delete" else None


def _clauses(found: Sequence[Token], at: int) -> Iterator[tuple[str, int]]:
    """In the order in which they may stand."""
    order = ("set", "from", "using", "where", "returning")
    last = -1
    for i, token in top(found):
        if i < at or not token.is_(*order) or (token.is_("from") and found[i - 1].is_("distinct")):
            continue
        if order.index(token.value) > last:
            last = order.index(token.value)
            yield token.value, i


def top(found: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """Those that stand in no parentheses, with their places."""
    depth = 0
    for i, token in enumerate(found):
        if token.sort == "op" and token.value in "()[]":
            depth += 1 if token.value in "([" else -1
        elif depth == 0:
            yield i, token


def _computed(found: Sequence[Token]) -> Iterator[str]:
    commas = [i for i, token in top(found) if token.sort == "op" and token.value == ","]
    for start, end in zip([0, *(i + 1 for i in commas)], [*commas, len(found)], strict=True):
        part = found[start:end]
        equals = next((i for i, t in enumerate(part) if t.sort == "op" and t.value == "="), 0)
        value = part[equals + 1 :]
        if len(value) != 1 or not (value[0].sort in ("string", "number", "param", "blob") or value[0].is_(*_CONSTANT)):
            yield from (t.value for t in part[:equals] if t.names())
