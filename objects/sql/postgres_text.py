"""A statement as psycopg and PostgreSQL get it.

Parameters are in psycopg's form, so a % is doubled. CURRENT_TIMESTAMP and its like are no functions but words of the
grammar, which the search path cannot turn to the time of the request: they are written as ``obo.now()``, also in the
body of a function. Casts that may make a time of a text are guarded (postgres_casts).
"""

from collections.abc import Sequence
from typing import Final

from framework import BadRequest
from objects.sql import refuse_postgres
from objects.sql.postgres_casts import guarded
from objects.sql.refuse import called, check_limits
from objects.sql.tokens import Token, tokens

_TIMES: Final = {
    "current_timestamp": "timestamptz",
    "current_date": "date",
    "current_time": "timetz",
    "localtime": "time",
    "localtimestamp": "timestamp",
}


def postgres_text(text: str, found: Sequence[Token], writes: bool = True) -> str:
    function = found[0].is_("create") and any(t.is_("function") for t in found[1:4])
    index = found[0].is_("create") and any(t.is_("index") for t in found[1:3])  # takes nothing that depends on a clock
    if writes and not index:
        text = guarded(text, found)
        found = tokens(text, "postgres")
    return _written(text, found, function).replace("\0", "%")


def _written(text: str, found: Sequence[Token], function: bool) -> str:
    """A NUL, which no statement has, stands for a % that is psycopg's."""
    out: list[str] = []
    at, last = found[0].start, found[-1].end
    skip = 0
    for i, token in enumerate(found):
        if skip:
            skip -= 1
            continue
        piece, more = _piece(text, found, i, function)
        if piece is not None:
            out += [_percent(text[at : token.start]), piece]
            at, skip = found[i + more].end, more
    out.append(_percent(text[at:last]))
    return "".join(out)


def _percent(text: str) -> str:
    return text.replace("%", "\0\0")


def _piece(text: str, found: Sequence[Token], i: int, function: bool) -> tuple[str | None, int]:
    """What stands for a token, and how many more after it; None: it stays."""
    token = found[i]
    if token.sort == "param" and text[token.start] != "$":
        return (f"\0({token.value})s" if token.value else "\0s"), 0
    if token.sort == "word" and token.value in _TIMES and (i == 0 or found[i - 1].value != "."):
        kind = _TIMES[token.value]
        if i + 3 < len(found) and found[i + 1].value == "(" and found[i + 2].sort == "number":
            return f"CAST(obo.now() AS {kind}({found[i + 2].value}))", 3
        return ("obo.now()" if kind == "timestamptz" else f"CAST(obo.now() AS {kind})"), 0
    if function and token.sort == "string" and i and found[i - 1].is_("as"):
        return _body(text[token.start : token.end]), 0
    return None, 0


def _body(text: str) -> str:
    """Of a function."""
    if not text.startswith("$"):
        raise BadRequest("the body of a function is refused in '...': write it as $$ ... $$")
    cut = text.index("$", 1) + 1
    inner = text[cut:-cut]
    found = tokens(inner, "postgres")
    if not found:
        return _percent(text)
    refuse_postgres.check_body(found, list(called(found)))
    check_limits(found, "postgres")
    inner = guarded(inner, found)
    found = tokens(inner, "postgres")
    if any(t.sort == "param" and inner[t.start] != "$" for t in found):
        raise BadRequest("? and :name are refused in the body of a function: call its arguments by their names, or $1")
    return f"{text[:cut]}{_percent(inner[: found[0].start])}{_written(inner, found, False)}{text[-cut:]}"
