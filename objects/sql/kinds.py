"""Which kinds of statement there are, by their first words. What is not in these lists is refused."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal

from framework import BadRequest
from objects.sql.tokens import Dialect, Token

Kind = Literal["select", "insert", "update", "delete", "ddl", "analyze"]

_FIRST: Final[Mapping[str, Kind]] = {
    "select": "select",
    "values": "select",
    "insert": "insert",
    "update": "update",
    "delete": "delete",
    "analyze": "analyze",
}
_ONLY: Final[Mapping[Dialect, Mapping[str, Kind]]] = {
    "sqlite": {"replace": "insert", "reindex": "ddl"},
    "postgres": {"table": "select", "merge": "update", "truncate": "delete", "comment": "ddl"},
}

#: What CREATE, DROP and ALTER may be about.
_THINGS: Final[Mapping[Dialect, frozenset[str]]] = {
    "sqlite": frozenset({"table", "index", "view", "trigger"}),
    "postgres": frozenset(
        {"table", "index", "view", "trigger", "sequence", "type", "domain", "schema", "function"},
    ),
}
_BETWEEN: Final = frozenset({"or", "replace", "unique", "constraint"})  # CREATE OR REPLACE VIEW, CREATE UNIQUE INDEX

_TRANSACTION = "call transaction([(sql, params), ...]), which performs all of its statements or none"
_SETTING = "settings belong to the configuration of the object, the same for every replica"
_OUTSIDE = "it is not part of the data that replicas share"
_REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("begin", "commit", "rollback", "end", "start", "savepoint", "release", "abort", "prepare"),
        f"transactions are not made by statements: {_TRANSACTION}",
    ),
    **dict.fromkeys(("attach", "detach"), "one object is one database: declare another object for another database"),
    **dict.fromkeys(("set", "reset", "discard", "show"), _SETTING),
    **dict.fromkeys(
        ("copy", "import"), "replicas do not see each other's files: use INSERT, or obo sql import FILE.csv"
    ),
    **dict.fromkeys(
        ("listen", "notify", "unlisten", "declare", "fetch", "move", "close", "execute", "deallocate", "load"),
        "it belongs to one connection, and replicas perform statements on connections of their own",
    ),
    **dict.fromkeys(("grant", "revoke", "reassign", "security"), f"{_OUTSIDE}: do it at each database server"),
    **dict.fromkeys(("vacuum", "cluster", "checkpoint", "refresh"), f"{_OUTSIDE}: do it at each replica by itself"),
    "lock": "replicas order statements by what they touch, and need no locks: leave it out",
    "do": "what a block of code does cannot be told from outside: write its statements, in one transaction([...])",
    "call": "what a procedure does cannot be told from outside: write its statements, in one transaction([...])",
    "reindex": "it cannot be told to be the same at every replica: DROP INDEX and CREATE INDEX",
}
_REFUSED_THINGS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("temp", "temporary"),
        "a temporary table belongs to one connection, and replicas have connections of their own: use a plain table",
    ),
    "virtual": "what a virtual table does cannot be told from outside: use a plain table",
    "unlogged": "the server empties it after a crash, and then replicas differ: leave out UNLOGGED",
    "materialized": "it holds a copy that each replica would make by itself: use a table, or a plain view",
    "rule": "rules change statements unseen: use a trigger",
    "procedure": _REFUSED["call"],
}

#: PRAGMAs that only tell something, with what they read: the schema, or all tables.
PRAGMAS: Final[Mapping[str, Literal["schema", "all"]]] = {
    **dict.fromkeys(
        ("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list",
         "collation_list", "function_list", "module_list", "pragma_list", "compile_options", "database_list",
         "foreign_keys", "user_version", "application_id", "schema_version", "encoding", "page_size", "page_count",
         "freelist_count", "journal_mode", "synchronous"),
        "schema",
    ),
    **dict.fromkeys(("foreign_key_check", "integrity_check", "quick_check"), "all"),
}  # fmt: skip
_WITH_ARGUMENT: Final = frozenset(
    {"table_info", "table_xinfo", "index_list", "index_info", "index_xinfo", "foreign_key_list", "foreign_key_check",
     "integrity_check", "quick_check", "table_list"}
)  # fmt: skip


def kind_of(tokens: Sequence[Token], dialect: Dialect) -> Kind:
    """BadRequest says why a statement of this kind is refused, and what to do instead."""
    first = tokens[0]
    if first.sort == "op" and first.value == "(":
        first = next((t for t in tokens if t.value != "("), first)
    word = first.value if first.sort == "word" else ""
    found = _FIRST.get(word) or _ONLY[dialect].get(word)
    if word == "with":
        found = _after_with(tokens, dialect)
    if found is not None:
        return "update" if found == "select" and dialect == "postgres" and _modifies(tokens) else found
    if word in ("create", "drop", "alter"):
        _check_thing(tokens, dialect)
        return "ddl"
    if word == "explain":
        return _check_explain(tokens, dialect)
    if word == "pragma" and dialect == "sqlite":
        return _check_pragma(tokens)
    if word in _REFUSED:
        raise BadRequest(f"{word.upper()} is refused: {_REFUSED[word]}")
    raise BadRequest(
        f"syntax error near {first.value!r}: no statement begins so; these are known to be the same at every replica: "
        "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, ANALYZE"
    )


def _after_with(tokens: Sequence[Token], dialect: Dialect) -> Kind:
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.value == "(") - (token.value == ")") if token.sort == "op" else 0
        found = _FIRST.get(token.value) or _ONLY[dialect].get(token.value) if token.sort == "word" else None
        if found is not None and depth == 0 and i > 2 and tokens[i - 1].value in (")", "materialized"):
            return found
    raise BadRequest("WITH is refused without SELECT, VALUES, INSERT, UPDATE or DELETE after it")


def _modifies(tokens: Sequence[Token]) -> bool:
    """PostgreSQL: WITH x AS (DELETE ...) SELECT ..."""
    return any(a.value == "(" and a.sort == "op" and b.is_("insert", "update", "delete") for a, b in pairwise(tokens))


def _check_thing(tokens: Sequence[Token], dialect: Dialect) -> None:
    verb = tokens[0].value.upper()
    for token in tokens[1:]:
        if token.is_(*_THINGS[dialect]):
            return
        if not token.is_(*_BETWEEN):
            break
    else:
        raise BadRequest(f"{verb} what? There is nothing after it")
    why = _REFUSED_THINGS.get(token.value, f"{_OUTSIDE}, or not known to be the same at every replica")
    things = ", ".join(sorted(_THINGS[dialect])).upper()
    raise BadRequest(f"{verb} {token.value.upper()} is refused: {why} ({verb} knows {things})")


def _check_explain(tokens: Sequence[Token], dialect: Dialect) -> Kind:
    """Only of what could be performed: SQLite does what a PRAGMA says even if it is only to be explained."""
    if any(t.is_("analyze", "analyse") for t in tokens[1:6]):
        raise BadRequest(
            "EXPLAIN ANALYZE is refused: it performs the statement, at one replica alone: leave out ANALYZE"
        )
    known = {"with", *_FIRST, *_ONLY[dialect]} - {"analyze", "reindex", "comment", "truncate"}
    inner = next((i for i, t in enumerate(tokens) if t.is_(*known)), None)
    between = () if inner is None else tokens[1:inner]
    plan = not between or all(t.is_("query", "plan") for t in between)
    options = dialect == "postgres" and all(t.is_("verbose", "format", "costs", "json", "text", "off", "on", "settings")
                                            or t.value in "(),." for t in between)  # fmt: skip
    if inner is None or not (plan or options):
        raise BadRequest(
            "EXPLAIN is refused here: it is for SELECT, INSERT, UPDATE and DELETE, without further options"
        )
    kind_of(tokens[inner:], dialect)
    return "select"


def _check_pragma(tokens: Sequence[Token]) -> Kind:
    rest = tokens[1:]
    if len(rest) > 2 and rest[1].value == ".":
        rest = rest[2:]
    name = rest[0].value.lower() if rest else ""
    allowed = (1, 4) if name in _WITH_ARGUMENT else (1,)
    if name not in PRAGMAS or len(rest) not in allowed or any(t.value == "=" for t in rest):
        raise BadRequest(
            f"PRAGMA {name} is refused: it changes something, or may, and {_SETTING}. Those that only tell something "
            f"are allowed: {', '.join(sorted(PRAGMAS))}"
        )
    return "select"
