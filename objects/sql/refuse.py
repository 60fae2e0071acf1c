"""What cannot be made equal at every replica, or would reach past the replica's own data, found in the words of a
statement. Each refusal says why, and what to do instead."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from framework import BadRequest
from objects.sql import refuse_postgres
from objects.sql.kinds import Kind
from objects.sql.tokens import Dialect, Token, folded

RESERVED: Final = "_obo"

_RETURNING = "it tells of one connection, which each replica has for itself: use RETURNING, or the result's rowcount"
_BUILD = "replicas may run different builds"

#: Functions of SQLite that are refused wherever they are called; and those refused in what changes data.
_CALLS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("last_insert_rowid", "changes", "total_changes"), _RETURNING),
    **dict.fromkeys(("load_extension", "fts3_tokenizer"), "code cannot be loaded by a statement"),
    "sqlite_offset": "replicas need not store rows at the same place",
}
_CALLS_WRITING: Final[Mapping[str, str]] = dict.fromkeys(
    ("sqlite_version", "sqlite_source_id", "sqlite_compileoption_get", "sqlite_compileoption_used"), _BUILD
)
_FOREIGN: Final[Mapping[Dialect, frozenset[str]]] = {
    "sqlite": frozenset({"temp"}),
    "postgres": frozenset({"pg_temp", "obo"}),
}


def check(tokens: Sequence[Token], kind: Kind, dialect: Dialect) -> None:
    """BadRequest if the statement cannot be replicated. ``tokens`` of one statement, of this kind."""
    writes = kind != "select"
    _check_names(tokens, dialect)
    if dialect == "sqlite":
        _check_sqlite(tokens, writes)
    else:
        refuse_postgres.check(tokens, list(called(tokens)), kind)
    _check_resolutions(tokens)
    _check_targets(tokens)
    if writes:
        check_limits(tokens, dialect)
    if kind == "ddl":
        _check_deferred(tokens)
        if dialect == "sqlite":
            _check_timeless(tokens)


def called(tokens: Sequence[Token]) -> Iterator[str]:
    """Names that stand before a parenthesis: all functions, and more."""
    for token, after in pairwise(tokens):
        if token.names() and after.sort == "op" and after.value == "(":
            yield folded(token.value)


def _check_names(tokens: Sequence[Token], dialect: Dialect) -> None:
    for i, token in enumerate(tokens):
        # SQLite also takes a string for a name
        if (token.names() or (token.sort == "string" and dialect == "sqlite")) and folded(token.value).startswith(
            RESERVED
        ):
            raise BadRequest(
                f"{token.value!r} is refused: names that begin with {RESERVED} belong to the framework: choose another "
                "name (a value: give it as a parameter)"
            )
        qualifies = token.names() and i + 1 < len(tokens) and tokens[i + 1].value == "."
        if qualifies and folded(token.value) in _FOREIGN[dialect]:
            raise BadRequest(f"{token.value}.… is refused: what is in there is not shared by the replicas")


def _check_sqlite(tokens: Sequence[Token], writes: bool) -> None:
    for name in called(tokens):
        why = _CALLS.get(name) or (_CALLS_WRITING.get(name) if writes else None)
        if why is not None:
            raise BadRequest(f"{name}() is refused: {why}")
    for name in (folded(t.value) for t in tokens if t.names() and writes):
        if name.startswith("sqlite_stat"):
            raise BadRequest("the statistics of SQLite are made by ANALYZE alone: use ANALYZE")
        if name.startswith("pragma_"):
            raise BadRequest(f"{name} is refused in what changes data: replicas may run different builds")


def _check_resolutions(tokens: Sequence[Token]) -> None:
    """Ways of dealing with an error that would take back more, or less, than the one statement."""
    for a, b, c in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if not c.is_("rollback", "fail"):
            continue
        conflict = a.is_("on") and b.is_("conflict")
        if conflict or (a.is_("insert", "update") and b.is_("or")) or (a.is_("raise") and b.value == "("):
            way = c.value.upper()
            why = "takes back statements of others" if way == "ROLLBACK" else "leaves half of a statement behind"
            raise BadRequest(f"{a.value.upper()} {b.value.upper()} {way} is refused: it {why}: use ABORT")


def _check_targets(tokens: Sequence[Token]) -> None:
    """Two ON CONFLICT for one constraint: SQLite 3.40 then puts the row in the place of another one that has its
    primary key, and leaves that in its indexes: the database is damaged, at every replica alike. Which constraint is
    meant is not asked: a column may stand in one of them."""
    named: set[str] = set()
    for i, token in enumerate(tokens):
        after = tokens[i + 1 : i + 3]
        if len(after) < 2:
            return
        if token.is_("insert") or token.value == ";" or (token.is_("replace") and after[0].is_("into")):
            named = set()
        if token.is_("on") and after[0].is_("conflict") and after[1].value == "(":
            target = {_ROW if name in _ROWIDS else name for name in _names(tokens[i + 3 :])}
            if named & target or (named and _ROW in named | target):
                raise BadRequest(
                    "two ON CONFLICT clauses with one column are refused: SQLite may damage its index: say once what "
                    "is to be done when a constraint is violated, and name the primary key by its column"
                )
            named |= target


_ROWIDS: Final = frozenset({"rowid", "_rowid_", "oid"})
_ROW: Final = "rowid"


def _names(tokens: Sequence[Token]) -> Iterator[str]:
    """Until the parenthesis is closed."""
    depth = 1
    for token in tokens:
        if token.sort == "op" and token.value in "()":
            depth += 1 if token.value == "(" else -1
            if depth == 0:
                return
        elif (token.names() or token.sort == "string") and not token.is_("collate", "asc", "desc", "binary", "nocase"):
            yield folded(token.value)


def check_limits(tokens: Sequence[Token], dialect: Dialect) -> None:
    """A LIMIT takes rows as they come, unless the same SELECT, UPDATE or DELETE has an ORDER BY."""
    words = ("limit",) if dialect == "sqlite" else ("limit", "offset", "fetch")
    ordered = [False]  # at each level of parentheses
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.sort == "op" and token.value == "(":
            ordered.append(False)
        elif token.sort == "op" and token.value == ")" and len(ordered) > 1:
            ordered.pop()
        elif token.sort == "op" and token.value == ";":
            ordered = [False]
        elif token.is_("order") and after is not None and after.is_("by"):
            ordered[-1] = True
        elif token.is_(*words) and not ordered[-1]:
            raise BadRequest(
                f"{token.value.upper()} without ORDER BY is refused in a statement that changes data: replicas may "
                "have the rows in different orders, and take different ones: add ORDER BY over a key"
            )


def _check_deferred(tokens: Sequence[Token]) -> None:
    for a, b in pairwise(tokens):
        if a.is_("initially") and b.is_("deferred"):
            raise BadRequest(
                "INITIALLY DEFERRED is refused: it would be checked at a commit, which is shared by statements of "
                "others: leave it out, and order the statements of a transaction so that each is right"
            )


_DATES: Final = {"date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1, "timediff": 0}
_NOW: Final = ("now", "subsec", "subsecond")


def _check_timeless(tokens: Sequence[Token]) -> None:
    """An index, a CHECK or a computed column keeps what an expression once gave: SQLite refuses 'now' there, but cannot
    know it of our functions. What it knows, that one without arguments is never the same, it refuses by itself."""
    index = tokens[0].is_("create") and any(t.is_("index") for t in tokens[1:3])
    kept = [index]  # at each level of parentheses
    for i, token in enumerate(tokens):
        if token.sort == "op" and token.value == "(":
            kept.append(kept[-1] or (i > 0 and tokens[i - 1].is_("as", "check")))
            before = _DATES.get(folded(tokens[i - 1].value)) if i and tokens[i - 1].names() else None
            if before is not None and kept[-1] and _is_now(tokens[i + 1 :], before):
                raise BadRequest(
                    f"{tokens[i - 1].value}('now') is refused in an index, a CHECK or a computed column, which must "
                    "give the same at any time: keep the time in a column, with a DEFAULT"
                )
        elif token.sort == "op" and token.value == ")" and len(kept) > 1:
            kept.pop()


def _is_now(tokens: Sequence[Token], before: int) -> bool:
    """Is one of the arguments after ``before`` others the word itself?"""
    depth = place = 0
    for token in tokens:
        if token.sort == "op" and token.value in "()":
            depth += 1 if token.value == "(" else -1
            if depth < 0:
                return False
        elif depth == 0 and token.sort == "op" and token.value == ",":
            place += 1
        elif place >= before and token.sort in ("string", "name", "word") and folded(token.value) in _NOW:
            return True
    return False
