"""What cannot be made equal at every replica, or would reach past the replica's own data, found in the words of a
statement. Each refusal says why, and what to do instead."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from framework import BadRequest
from objects.sql.kinds import Kind
from objects.sql.tokens import Dialect, Token, folded

RESERVED: Final = "_obo"

_RETURNING = "it tells of one connection, which each replica has for itself: use RETURNING, or the result's rowcount"
_BUILD = "replicas may run different builds"
_PHYSICAL = "replicas need not store rows at the same place"

#: Refused wherever it is called.
_CALLS: Final[Mapping[Dialect, Mapping[str, str]]] = {
    "sqlite": {
        **dict.fromkeys(("last_insert_rowid", "changes", "total_changes"), _RETURNING),
        "load_extension": "code cannot be loaded by a statement",
        "sqlite_offset": _PHYSICAL,
        "fts3_tokenizer": "code cannot be loaded by a statement",
    },
    "postgres": {
        **dict.fromkeys(("clock_timestamp", "timeofday"), "each replica has a clock of its own: use now()"),
        **dict.fromkeys(
            ("nextval", "setval", "currval", "lastval"),
            "sequences move with the rows that are inserted: leave the column out of INSERT, and use RETURNING",
        ),
        "pg_sleep": "it holds up every statement behind it: sleep in the client",
        "pg_sleep_for": "it holds up every statement behind it: sleep in the client",
        "pg_sleep_until": "it holds up every statement behind it: sleep in the client",
        "set_config": "settings are the same for every replica, and belong to the configuration of the object",
        "pg_notify": "it belongs to one server: let the client that wrote tell others",
    },
}
#: Refused in what changes data.
_CALLS_WRITING: Final[Mapping[Dialect, Mapping[str, str]]] = {
    "sqlite": dict.fromkeys(
        ("sqlite_version", "sqlite_source_id", "sqlite_compileoption_get", "sqlite_compileoption_used"), _BUILD
    ),
    "postgres": {
        **dict.fromkeys(
            ("version", "current_setting", "inet_server_addr", "inet_server_port", "pg_backend_pid"), _BUILD
        ),
        **dict.fromkeys(("setseed", "random_normal"), "it draws from the server's own chance: use random()"),
    },
}
#: PostgreSQL: functions whose names begin so have effects, or tell of one server.
_PREFIXES: Final[Mapping[str, str]] = {
    "pg_advisory_": "replicas need no locks: they order statements by what they touch",
    "pg_try_advisory_": "replicas need no locks: they order statements by what they touch",
    "txid_": "each server numbers its transactions by itself",
    "pg_current_xact": "each server numbers its transactions by itself",
    "pg_current_wal": "each server writes a log of its own",
    "pg_read_": "replicas do not see each other's files",
    "pg_ls_": "replicas do not see each other's files",
    "pg_stat_": "it tells of one server: ask that server itself",
    "pg_logical_": "it reaches past this database",
    "pg_replication_": "it reaches past this database",
    "lo_": "large objects are not replicated: use a column of type bytea",
    "dblink": "it reaches past this database",
    "query_to_xml": "it performs a text that cannot be judged before",
    "table_to_xml": "it performs a text that cannot be judged before",
    "cursor_to_xml": "it performs a text that cannot be judged before",
    "schema_to_xml": "it performs a text that cannot be judged before",
    "database_to_xml": "it performs a text that cannot be judged before",
}
_FOREIGN: Final[Mapping[Dialect, frozenset[str]]] = {
    "sqlite": frozenset({"temp"}),
    "postgres": frozenset({"pg_temp", "obo"}),
}
_SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})


def check(tokens: Sequence[Token], kind: Kind, dialect: Dialect) -> None:
    """BadRequest if the statement cannot be replicated. ``tokens`` of one statement, of this kind."""
    writes = kind != "select"
    _check_names(tokens, dialect)
    _check_calls(tokens, dialect, writes)
    _check_resolutions(tokens)
    if writes:
        _check_limits(tokens, dialect)
    if kind == "ddl":
        _check_deferred(tokens)
    if dialect == "postgres":
        _check_postgres(tokens, kind)


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
    if dialect != "sqlite":
        return
    reads = tokens[0].value in ("select", "with", "values", "pragma", "explain")
    if any(t.names() and folded(t.value).startswith("sqlite_stat") for t in tokens) and not reads:
        raise BadRequest("the statistics of SQLite are made by ANALYZE alone: use ANALYZE")


def _check_calls(tokens: Sequence[Token], dialect: Dialect, writes: bool) -> None:
    for name in called(tokens):
        why = _CALLS[dialect].get(name)
        if why is None and writes:
            why = _CALLS_WRITING[dialect].get(name)
        if why is None and dialect == "postgres":
            why = next((w for p, w in _PREFIXES.items() if name.startswith(p)), None)
        if why is not None:
            raise BadRequest(f"{name}() is refused: {why}")


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


def _check_limits(tokens: Sequence[Token], dialect: Dialect) -> None:
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


def _check_postgres(tokens: Sequence[Token], kind: Kind) -> None:
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.sort == "string" and after is not None and after.sort == "string":
            raise BadRequest("a string in two pieces is refused: write it as one")
        if token.is_(*_SYSTEM_COLUMNS):
            raise BadRequest(f"{token.value} is refused: {_PHYSICAL}: use a key")
        if token.is_("concurrently"):
            raise BadRequest("CONCURRENTLY is refused: it cannot be part of a transaction: leave it out")
        if token.is_("tablesample") and kind != "select":
            raise BadRequest("TABLESAMPLE is refused in a statement that changes data: replicas would take other rows")
        if token.is_("distinct") and after is not None and after.is_("on") and kind != "select":
            raise BadRequest("DISTINCT ON is refused in a statement that changes data: use GROUP BY with min or max")
        if token.is_("unlogged", "tablespace") and kind == "ddl":
            raise BadRequest(f"{token.value.upper()} is refused: it differs from server to server: leave it out")
        if token.is_("for") and after is not None and after.is_("update", "share", "no", "key") and kind == "select":
            raise BadRequest(
                "SELECT ... FOR UPDATE is refused: replicas need no locks: put both into transaction([...])"
            )
        if token.is_("into") and kind == "select" and before is not None:
            raise BadRequest("SELECT ... INTO is refused: write CREATE TABLE ... AS SELECT ...")
