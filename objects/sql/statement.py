"""A statement, understood as far as replicating it needs: its kind, its parameters, and that nothing in it would differ
from replica to replica. What it touches is in objects.sql.footprint.

``understand`` looks only at the text. It is asked where a call is taken, and again where it is performed: a text that
is refused is refused everywhere, alike.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import msgspec

from framework import BadRequest
from objects.sql import refuse, refuse_postgres
from objects.sql.kinds import Kind, kind_of
from objects.sql.postgres_text import postgres_text
from objects.sql.tokens import Dialect, Token, folded, tokens

LONGEST: Final = 1_000_000  # characters; also SQLite's limit
_REMEMBERED: Final = 20_000  # longer texts are made for one call
_SHOWN: Final = 200


class Statement(msgspec.Struct, frozen=True, eq=False):
    """``params``: which parameter stands at each place, by position or by name."""

    text: str  # as given
    run: str  # what is executed; PostgreSQL: always with parameters, since a % in it is doubled
    kind: Kind
    writes: bool
    dialect: Dialect
    plain: str  # for the parser: no comments, the n-th parameter is :pn
    params: tuple[str, ...] | tuple[int, ...]
    count: int  # of parameters by position
    names: frozenset[str]  # all that may name something, folded as the dialect does
    calls: frozenset[str]  # all that may be a function
    single: bool  # PostgreSQL: it may change one row at most, else rows would draw numbers as they lie on disk

    @property
    def named(self) -> bool:
        return bool(self.params) and isinstance(self.params[0], str)

    def check(self, params: Any) -> None:
        """BadRequest if these are not its parameters."""
        if type(params) in (tuple, list) and len(params) == self.count and not self.named:
            return  # by far the most; to ask for a Mapping takes longer
        if self.named != isinstance(params, Mapping) and (params or self.params):
            form = "by name: give a dict" if self.named else "by position: give a list" if self.params else "nowhere"
            raise BadRequest(f"the parameters are {form}; given: {params!r:.80}; in: {shown(self.text)}")
        if isinstance(params, Mapping):
            missing = [name for name in self.params if name not in params]
            if missing:
                raise BadRequest(f"the parameter :{missing[0]} is missing; in: {shown(self.text)}")
        elif len(params) != self.count:
            raise BadRequest(f"{len(params)} parameters for {self.count} places; in: {shown(self.text)}")


def understand(text: str, dialect: Dialect) -> Statement:
    """BadRequest if it cannot be replicated: why, and what to do instead."""
    if not isinstance(text, str):
        raise BadRequest(f"a statement is a text, not {text!r:.80}")
    try:
        return _remembered(text, dialect) if len(text) <= _REMEMBERED else _understand(text, dialect)
    except BadRequest as error:
        raise BadRequest(f"{error}; in: {shown(text)}") from None


def shown(text: str) -> str:
    """A statement in a message: one line, not too long."""
    line = " ".join(text[: 4 * _SHOWN].split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


@lru_cache(2048)
def _remembered(text: str, dialect: Dialect) -> Statement:
    return _understand(text, dialect)


def _understand(text: str, dialect: Dialect) -> Statement:
    if len(text) > LONGEST:
        raise BadRequest(f"the statement has {len(text):,} characters, more than {LONGEST:,}: use parameters")
    if "\0" in text:
        raise BadRequest("the statement has a character NUL: give such a text as a parameter")
    found = _one(tokens(text, dialect))
    kind = kind_of(found, dialect)
    refuse.check(found, kind, dialect)
    params = _params(text, found, dialect)
    return Statement(
        text=text,
        run=text[found[0].start : found[-1].end]
        if dialect == "sqlite"
        else postgres_text(text, found, kind != "select"),
        kind=kind,
        writes=kind != "select",
        dialect=dialect,
        plain=_plain(text, found),
        params=params,
        count=1 + max((p for p in params if isinstance(p, int)), default=-1),
        names=frozenset(folded(t.value) if dialect == "sqlite" else t.value for t in found if t.names()),
        calls=frozenset(refuse.called(found)),
        single=kind == "update" and dialect == "postgres" and refuse_postgres.draws(refuse.called(found)),
    )


def _one(found: list[Token]) -> list[Token]:
    """The tokens of the only statement, without what ends it."""
    while found and found[-1].value == ";" and found[-1].sort == "op":
        found = found[:-1]
    if not found:
        raise BadRequest("there is no statement in the text")
    trigger = found[0].is_("create") and any(t.is_("trigger") for t in found[1:5]) and found[-1].is_("end")
    if not trigger and any(t.sort == "op" and t.value == ";" for t in found):
        raise BadRequest(
            "there are several statements in the text: call transaction([(sql, params), ...]), which performs all or "
            "none, or call execute for each"
        )
    if trigger:
        _check_trigger(found)
    return found


def _check_trigger(found: Sequence[Token]) -> None:
    """The first END after a semicolon ends a trigger; the other ends belong to CASE."""
    for a, b in pairwise(found):
        if a.sort == "op" and a.value == ";" and b.is_("end") and b is not found[-1]:
            raise BadRequest("there is a statement after the END of the trigger: call execute for each")


def _params(text: str, found: Sequence[Token], dialect: Dialect) -> tuple[str, ...] | tuple[int, ...]:
    marks = [t for t in found if t.sort == "param"]
    signs = {text[t.start] for t in marks}
    if dialect == "postgres" and "$" in signs:
        raise BadRequest("$1 is refused: write ? and give a list, or :name and give a dict")
    if "?" in signs and len(signs) > 1:
        raise BadRequest(
            "there are parameters by position and by name in one statement: write all as ? or all as :name"
        )
    for mark in marks:
        if dialect == "sqlite" and text[mark.start] != "?" and text[mark.end : mark.end + 1] == "(":
            raise BadRequest(f"the parameter :{mark.value} goes on with '(': put a space between")  # else part of it
    if "?" not in signs:
        return tuple(t.value for t in marks)
    out: list[int] = []
    last = 0
    for mark in marks:
        if len(mark.value) > 5:
            raise BadRequest(f"?{mark.value}: the number is too large")
        here = int(mark.value) if mark.value else last + 1
        if here < 1:
            raise BadRequest("?0: parameters are counted from 1")
        last = max(last, here)
        out.append(here - 1)
    return tuple(out)


def _plain(text: str, found: Sequence[Token]) -> str:
    """Only what counts, each parameter numbered: other parsers do not know ?1, or what INDEXED BY is."""
    pieces: list[str] = []
    at, count = found[0].start, 0
    for token in found:
        pieces.append(" " if token.start > at else "")
        if token.sort == "param":
            pieces.append(f":p{count}")
            count += 1
        else:
            pieces.append(text[token.start : token.end])
        at = token.end
    return "".join(pieces)
