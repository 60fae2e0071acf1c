"""ORDER BY that leaves rows without an order among themselves, and sums of floats: PostgreSQL would go by where rows
lie on disk.

    INSERT INTO l SELECT id FROM t ORDER BY n       rows with one n are numbered in any order
    ... IN (SELECT id FROM t ORDER BY n LIMIT 1)    one of them is taken
    ARRAY(SELECT name FROM t ORDER BY n)            their names stand in any order
    string_agg(name, ',' ORDER BY n)                their names stand in any order
    sum(x), of floats                               a sum depends on the order in which it is made

What a SELECT gives, and what an aggregate is given, is added to such an ORDER BY: then rows that are left without an
order are the same. A sum of what may be floats is refused without an ORDER BY.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from objects.sql.errors import ProgrammingError
from objects.sql.kinds import Kind
from objects.sql.postgres_facts import Facts, Relation
from objects.sql.refuse_postgres import COLLECTS, COUNTS, check_insert
from objects.sql.tokens import Token

_SUMS: Final = frozenset(
    {"sum", "avg", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "corr", "covar_pop",
     "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy",
     "regr_syy"}
)  # fmt: skip
#: What a sum of columns that are no floats may have beside them, and be none of floats.
_EXACT_WORDS: Final = frozenset(
    {"case", "when", "then", "else", "end", "and", "or", "not", "is", "null", "distinct", "in", "between", "true",
     "false", "all", "int", "integer", "bigint", "smallint", "numeric", "decimal"}
)  # fmt: skip
_EXACT_CALLS: Final = frozenset({"coalesce", "abs", "greatest", "least", "nullif", "length", "round"})
_CASTS: Final = frozenset({"numeric", "decimal", "int", "integer", "bigint", "smallint"})
_ENDS: Final = ("limit", "offset", "fetch", "for", "on", "returning", "rows", "range", "groups", "with", "as")
_WAYS: Final = ("asc", "desc", "nulls", "first", "last")


class _Level(msgspec.Struct):
    """What stands between two parentheses, or outside of all."""

    first: int  # its first token
    before: Token | None = None  # what stands before the parenthesis
    select: int = -1
    source: int = -1  # FROM
    order: int = -1  # the first token after ORDER BY
    end: int = -1  # of ORDER BY
    limited: bool = False


def settled(text: str, found: Sequence[Token], kind: Kind, facts: Facts) -> str:
    """The statement with what it needs to be the same everywhere; ProgrammingError if nothing helps."""
    if kind in ("select", "analyze"):
        return text
    added: list[tuple[int, str]] = []
    for level, start, end in _levels(found):
        added += _settle(text, found, level, start, end, kind, facts)
    for at, piece in sorted(added, reverse=True):
        text = text[:at] + piece + text[at:]
    return text


def check_body(text: str, found: Sequence[Token], facts: Facts) -> None:
    """Of a function: nothing is added to it."""
    start = 0
    for i, token in enumerate([*found, None]):
        if token is not None and not (token.sort == "op" and token.value == ";"):
            continue
        piece, start = found[start:i], i + 1
        insert = next((k for k, t in enumerate(piece) if t.is_("insert")), None)
        if insert is not None:
            piece = piece[insert:]
            check_insert(piece)
        if piece and settled(text, piece, "update" if insert is None else "insert", facts) != text:
            raise ProgrammingError(
                "ORDER BY in a function is refused where rows may have no order among themselves: replicas would take "
                "them as they lie on disk: order by the primary key of the only table"
            )


def _levels(found: Sequence[Token]) -> Iterator[tuple[_Level, int, int]]:
    """Each with the places of its first token and of the one after its last."""
    open_: list[_Level] = [_Level(0)]
    for i, token in enumerate(found):
        if token.sort == "op" and token.value == "(":
            open_.append(_Level(i + 1, found[i - 1] if i else None))
        elif token.sort == "op" and token.value == ")" and len(open_) > 1:
            level = open_.pop()
            yield level, level.first, i
        else:
            _see(open_[-1], found, i)
    while open_:
        level = open_.pop()
        yield level, level.first, len(found)


def _see(level: _Level, found: Sequence[Token], i: int) -> None:
    token = found[i]
    if token.is_("select") and level.select < 0:
        level.select = i
    elif token.is_("from") and level.source < 0 and level.select >= 0 and not found[i - 1].is_("distinct"):
        level.source = i
    elif token.is_("by") and found[i - 1].is_("order"):
        level.order, level.end = i + 1, -1
    elif token.is_(*_ENDS) and level.order >= 0 and level.end < 0:
        level.end = i
    if token.is_("limit", "offset", "fetch"):
        level.limited = True


def _settle(
    text: str, found: Sequence[Token], level: _Level, start: int, end: int, kind: Kind, facts: Facts
) -> Iterator[tuple[int, str]]:
    """What is added to the text, and where."""
    last = end if level.end < 0 else level.end
    name = level.before.value if level.before is not None and level.before.names() else ""
    if name in _SUMS and level.order < 0 and not _is_exact(found[start:end], facts):
        raise ProgrammingError(
            f"{name}(...) without ORDER BY is refused in a statement that changes data, if it may add up floats: what "
            f"comes out depends on their order: write {name}(x ORDER BY x), or {name}(x::numeric)"
        )
    if level.order < 0:
        return
    at = found[last - 1].end
    if name in _SUMS or name in COLLECTS:
        given = _arguments(text, found, start, level.order - 2)
        if given:
            yield at, ", " + ", ".join(given)
    elif name == "over" or (found[start - 2 : start - 1] and found[start - 2].is_("as") and level.select < 0):
        _check_window(found, level, last, facts)
    elif level.limited or name == "array" or found[start].is_("insert") or (start == 0 and kind == "insert"):
        yield from _all_columns(found, level, start, end, last, at, facts)


def _all_columns(
    found: Sequence[Token], level: _Level, start: int, end: int, last: int, at: int, facts: Facts
) -> Iterator[tuple[int, str]]:
    source = _one_source(found, level, end, facts)
    ordered = _plain_columns(found[level.order : last])
    if source is not None and source.key and set(source.key) <= ordered and not source.several:
        return
    count = _count(found, level, end, source)
    if count is None:
        raise ProgrammingError(
            "ORDER BY is refused here: rows may have no order among themselves, and replicas would take them as they "
            "lie on disk: name the columns after SELECT, or order by the primary key of the only table"
        )
    yield at, "".join(f", {i}" for i in range(1, count + 1))


def _one_source(found: Sequence[Token], level: _Level, end: int, facts: Facts) -> Relation | None:
    """The only table, or view, that a SELECT reads."""
    if level.source < 0:
        return None
    at = level.source + 1
    name = ""
    while at < end and found[at].names():
        name, at = found[at].value, at + 1
        if at < end and found[at].value == ".":
            at += 1
            continue
        break
    at += at < end and found[at].is_("as")
    at += at < end and found[at].names() and not found[at].is_(*_AFTER_SOURCE)
    alone = at >= end or found[at].is_(*_AFTER_SOURCE)
    joined = any(t.is_("join", "union", "except", "intersect") for t in found[at:end])
    return facts.relations.get(name) if alone and not joined else None


_AFTER_SOURCE: Final = ("where", "group", "order", "limit", "offset", "fetch", "having", "window")


def _plain_columns(found: Sequence[Token]) -> set[str]:
    """Names that are an item of their own in a list, with nothing computed."""
    out: set[str] = set()
    for item in _items(found):
        rest = [t for t in item if not t.is_(*_WAYS)]
        if len(rest) == 3 and rest[1].value == ".":
            rest = rest[2:]
        if len(rest) == 1 and rest[0].names():
            out.add(rest[0].value)
    return out


def _items(found: Sequence[Token]) -> Iterator[Sequence[Token]]:
    depth, start = 0, 0
    for i, token in enumerate(found):
        if token.sort == "op" and token.value in "()[]":
            depth += 1 if token.value in "([" else -1
        elif token.sort == "op" and token.value == "," and depth == 0:
            yield found[start:i]
            start = i + 1
    if start < len(found):
        yield found[start:]


def _count(found: Sequence[Token], level: _Level, end: int, source: Relation | None) -> int | None:
    """How many columns a SELECT gives."""
    if level.select < 0:
        return None
    stop = level.source if level.source >= 0 else level.order - 2
    items = found[level.select + 1 : stop]
    if items and items[0].is_("distinct", "all"):
        items = items[1:]
    count = 0
    for item in _items(items):
        if item[-1].sort == "op" and item[-1].value == "*":
            if source is None or source.several:
                return None
            count += len(source.columns)
        else:
            count += 1
    return count


def _arguments(text: str, found: Sequence[Token], start: int, end: int) -> list[str]:
    """Of an aggregate, but for constants."""
    given = found[start:end]
    if given and given[0].is_("distinct", "all"):
        given = given[1:]
    return [
        text[item[0].start : item[-1].end]
        for item in _items(given)
        if not (len(item) == 1 and item[0].sort in ("string", "number", "param"))
    ]


def _check_window(found: Sequence[Token], level: _Level, last: int, facts: Facts) -> None:
    """Rows without an order among themselves are counted in any."""
    if not any(t.names() and t.value in COUNTS for t in found) and not any(t.is_("rows", "groups") for t in found):
        return
    ordered = _plain_columns(found[level.order : last])
    tables = [r for name, r in facts.relations.items() if r.key and any(t.names() and t.value == name for t in found)]
    if not any(set(r.key) <= ordered and not r.several for r in tables) or any(t.is_("join") for t in found):
        raise ProgrammingError(
            "OVER (ORDER BY ...) is refused in a statement that changes data unless it ends with the primary key of "
            "the only table: rows without an order among themselves would be counted as they lie on disk"
        )


def _is_exact(found: Sequence[Token], facts: Facts) -> bool:
    """Is it certain that there are no floats?"""
    for i, token in enumerate(found):
        after = found[i + 1] if i + 1 < len(found) else None
        if token.sort in ("param", "string", "blob") or (token.sort == "op" and token.value in "^|@"):
            return False
        if not token.names() or token.value in _EXACT_WORDS:
            continue
        if after is not None and after.sort == "op" and after.value in ("(", "."):
            if after.value == "(" and token.value not in _EXACT_CALLS:
                return False
            continue
        cast = after is not None and after.value == "::" and i + 2 < len(found) and found[i + 2].value in _CASTS
        if not cast and not facts.is_exact(token.value):
            return False
    return True
