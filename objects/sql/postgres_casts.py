"""Casts in a statement of PostgreSQL that may turn a text into a time: 'now' would be the clock of each server.

A text that stands in the statement is looked at there, a parameter where it is given. Of anything else, a column or
what is computed, the text is known to the server alone: ``x::timestamptz`` is written ``obo.timeless(x)::timestamptz``,
which gives back what it gets, or says that it is refused. So it is also in views, defaults and bodies of functions.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from framework import BadRequest
from objects.sql.tokens import Token

#: As a regular expression for both, Python and PostgreSQL.
WORD: Final = "(^|[^a-z])(now|today|tomorrow|yesterday)([^a-z]|$)"
_WORD: Final = re.compile(WORD, re.IGNORECASE)
_PARTS: Final = re.compile(r"\s*[({\[]")

#: Types that hold no time: nothing that a text may say depends on a clock there. Their arrays hold none either.
TIMELESS: Final = frozenset(
    {"int", "integer", "bigint", "smallint", "int2", "int4", "int8", "numeric", "decimal", "real", "float", "float4",
     "float8", "double", "text", "varchar", "char", "character", "bpchar", "name", "bool", "boolean", "uuid", "bytea",
     "json", "jsonb", "jsonpath", "xml", "interval", "bit", "varbit", "inet", "cidr", "macaddr", "money", "oid",
     "regclass", "regtype", "tsvector", "tsquery", "point", "int4range", "int8range", "numrange"}
)  # fmt: skip
_CALLED: Final = frozenset({"date", "timestamptz", "timetz", "timestamp", "time"})
_INSIDE: Final = ("over", "filter", "group")  # their parentheses belong to the call before them
_NO_CALL: Final = frozenset(
    {"in", "and", "or", "not", "when", "then", "else", "select", "where", "on", "by", "values", "from", "having",
     "returning", "set", "like", "ilike", "between", "is", "distinct", "all", "using", "default", "check", "as", "case",
     "limit", "offset", "return", "if", "elsif", "while", "with", "union", "except", "intersect", "join"}
)  # fmt: skip


def has_parts(text: str) -> bool:
    """Is it a row, an array or a range with such a word in it? Any of its parts may be a time. JSON is none of them."""
    if _PARTS.match(text) is None or _WORD.search(text) is None:
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return True
    return False


def guarded(text: str, found: Sequence[Token]) -> str:
    """A statement that changes data, in which each text that becomes a time is looked at first."""
    added: list[tuple[int, int, str]] = []
    for i, token in enumerate(found):
        first, last = _cast(found, i) if token.sort in ("op", "word", "name") else (0, -1)
        if first <= last and not _is_plain(found[first : last + 1]):
            added += [(found[first].start, 1, "obo.timeless("), (found[last].end, 0, ")")]
    for at, _, piece in sorted(added, reverse=True):
        text = text[:at] + piece + text[at:]
    return text


def _is_plain(operand: Sequence[Token]) -> bool:
    """A literal, or a parameter: they are looked at as they are."""
    return len(operand) == 1 and (operand[0].sort in ("string", "number", "param", "blob") or operand[0].is_("null"))


def _cast(found: Sequence[Token], i: int) -> tuple[int, int]:
    """The operand of the cast at a place, if it may give a time: its first token and its last one."""
    token, none = found[i], (0, -1)
    follows = i + 1 < len(found) and found[i + 1].sort == "op" and found[i + 1].value == "("
    if token.sort == "op":
        return (_start(found, i - 1), i - 1) if token.value == "::" and not _timeless(found, i + 1) else none
    if token.is_("cast") and follows:
        end = _closing(found, i + 1)
        at = next((k for k in range(end - 1, i, -1) if found[k].is_("as") and _depth(found, i + 2, k) == 0), -1)
        return (i + 2, at - 1) if at > 0 and not _timeless(found, at + 1) else none
    typed = token.sort == "word" and token.value in ("timestamp", "time")  # timestamp(3) is a type
    if (
        token.value in _CALLED
        and follows
        and not typed
        and (i == 0 or found[i - 1].value not in ("::", "table", "into"))
    ):
        end = _closing(found, i + 1)
        return (i + 2, end - 1)
    return none


def _timeless(found: Sequence[Token], at: int) -> bool:
    """Is it the name of a type that holds no time?"""
    while at + 2 < len(found) and found[at + 1].value == "." and found[at + 1].sort == "op":
        at += 2
    return at < len(found) and found[at].names() and found[at].value in TIMELESS


def _depth(found: Sequence[Token], start: int, end: int) -> int:
    return sum((t.value in "([") - (t.value in ")]") for t in found[start:end] if t.sort == "op")


def _closing(found: Sequence[Token], at: int) -> int:
    depth = 0
    for i in range(at, len(found)):
        if found[i].sort == "op" and found[i].value in "()":
            depth += 1 if found[i].value == "(" else -1
            if depth == 0:
                return i
    raise BadRequest("a parenthesis is not closed")


def _start(found: Sequence[Token], end: int) -> int:
    """Where an operand begins whose last token this is. A cast binds closer than all but a dot and a subscript."""
    at, token = end, found[end] if end >= 0 else None
    if token is None:
        raise BadRequest("there is nothing before ::")
    if token.sort == "op" and token.value in ")]":
        at = _opening(found, end)
        before = found[at - 1] if at else None
        if before is None:
            return at
        if token.value == "]" and not before.is_("array"):
            return _start(found, at - 1)
        if before.is_(*_INSIDE):
            return _start(found, at - 2 - found[at - 2].is_("within"))
        if not before.names() or (before.sort == "word" and before.value in _NO_CALL):
            return at
        at -= 1
    elif token.is_("end"):
        depth = 0
        while at >= 0:
            depth += found[at].is_("end") - found[at].is_("case")
            if depth == 0:
                return at
            at -= 1
        raise BadRequest("there is an END without CASE before ::")
    elif token.is_("zone", "precision", "varying"):  # timestamp with time zone, double precision
        at -= 3 if token.is_("zone") else 1
    while at >= 2 and found[at - 1].sort == "op" and found[at - 1].value == ".":
        at -= 2
    if at >= 1 and found[at - 1].sort == "op" and found[at - 1].value == "::":  # it was a type
        return _start(found, at - 2)
    return at


def _opening(found: Sequence[Token], at: int) -> int:
    depth = 0
    for i in range(at, -1, -1):
        if found[i].sort == "op" and found[i].value in "()[]":
            depth += 1 if found[i].value in ")]" else -1
            if depth == 0:
                return i
    raise BadRequest("a parenthesis is not opened")


def has_types_of_users(found: Sequence[Token]) -> bool:
    """Is something cast to a type that is not known?"""
    for i, token in enumerate(found[:-1]):
        typed = (token.sort == "op" and token.value == "::") or (token.is_("as") and found[i + 1].names())
        if typed and found[i + 1].names() and not _timeless(found, i + 1):
            return True
    return False
