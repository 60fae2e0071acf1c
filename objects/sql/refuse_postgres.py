"""What PostgreSQL has beyond SQLite that would differ from replica to replica. Rows have no order of their own there,
so what is done row by row, and draws a number for each, needs an ORDER BY."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from framework import BadRequest
from objects.sql.kinds import Kind
from objects.sql.postgres_casts import has_parts
from objects.sql.tokens import Token

_SERVER = "it tells of one server, or reaches past the data"
_PHYSICAL = "replicas need not store rows at the same place: use a key"
_LARGE = "large objects are not replicated: use a column of type bytea"
_TEXT = "it performs a text that cannot be judged before"
_SEQUENCES = "sequences move with the rows that are inserted: leave the column out of INSERT, and use RETURNING"
_CHANCE = "it draws from the server's own chance: use random()"
_SLEEP = "it holds up every statement behind it: sleep in the client"

_CALLS: Final[Mapping[str, str]] = {
    "clock_timestamp": "each replica has a clock of its own: use now()",
    "timeofday": "each replica has a clock of its own: use now()",
    **dict.fromkeys(("nextval", "setval", "currval", "lastval"), _SEQUENCES),
    **dict.fromkeys(("setseed", "random_normal", "array_shuffle", "array_sample"), _CHANCE),
    **dict.fromkeys(("pg_sleep", "pg_sleep_for", "pg_sleep_until"), _SLEEP),
    "uuidv7": "it reads the server's own clock: use gen_random_uuid()",
    "set_config": "settings are the same for every replica, and belong to the configuration of the object",
    "pg_notify": "it belongs to one server: let the client that wrote tell others",
    **dict.fromkeys(("loread", "lowrite", "loopen"), _LARGE),
    **dict.fromkeys(("ts_stat", "ts_rewrite"), _TEXT),
    **dict.fromkeys(
        (
            "date_in",
            "time_in",
            "timetz_in",
            "timestamp_in",
            "timestamptz_in",
            "record_in",
            "array_in",
            "range_in",
            "multirange_in",
            "domain_in",
        ),
        "it reads a text past all checks: use a cast",
    ),
    **dict.fromkeys(("currtid2", "current_query", "txid_status"), _SERVER),
}
_PREFIXES: Final[Mapping[str, str]] = {
    "pg_advisory_": "replicas need no locks: they order statements by what they touch",
    "pg_try_advisory_": "replicas need no locks: they order statements by what they touch",
    "txid_": "each server numbers its transactions by itself",
    "lo_": _LARGE,
    "dblink": _SERVER,
    "binary_upgrade_": _SERVER,
    "brin_": _SERVER,
    "gin_": _SERVER,
    **dict.fromkeys(("query_to_xml", "table_to_xml", "cursor_to_xml", "schema_to_xml", "database_to_xml"), _TEXT),
}
#: Functions of the server that only look. All others whose names begin with pg_ are refused.
_LOOKS: Final = frozenset(
    {
        "pg_typeof", "pg_size_pretty", "pg_size_bytes", "pg_column_size", "pg_relation_size", "pg_table_size",
        "pg_indexes_size", "pg_total_relation_size", "pg_database_size", "pg_get_viewdef", "pg_get_indexdef",
        "pg_get_constraintdef", "pg_get_triggerdef", "pg_get_functiondef", "pg_get_expr", "pg_get_userbyid",
        "pg_get_serial_sequence", "pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible",
        "pg_input_is_valid", "pg_collation_for", "pg_get_partkeydef", "pg_get_function_arguments",
        "pg_get_function_result", "pg_relation_is_updatable", "pg_encoding_to_char",
    }
)  # fmt: skip
#: They make values of any type out of texts.
_UNPACKS: Final = frozenset(
    {"json_populate_record", "json_populate_recordset", "jsonb_populate_record", "jsonb_populate_recordset",
     "json_to_record", "json_to_recordset", "jsonb_to_record", "jsonb_to_recordset", "xmltable", "json_table"}
)  # fmt: skip
#: Refused in what changes data.
_CALLS_WRITING: Final = frozenset(
    {"version", "current_setting", "current_database", "inet_server_addr", "inet_server_port", "inet_client_addr",
     "inet_client_port", "getpgusername", "obj_description", "col_description"}
)  # fmt: skip
_WORDS_WRITING: Final = frozenset(
    {"current_user", "session_user", "current_role", "current_catalog", "system_user", "regclass", "regproc",
     "regprocedure", "regtype", "regrole", "regnamespace", "oid"}
)  # fmt: skip
_SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})
_DRAWS: Final = frozenset({"random", "gen_random_uuid", "uuidv4"})
#: The request's own stand before these in the search path, unless they are called by their full names.
_SHADOWED: Final = frozenset({*_DRAWS, "now", "transaction_timestamp", "statement_timestamp", "age"})
COLLECTS: Final = frozenset(
    {"array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "xmlagg",
     "json_arrayagg", "json_objectagg"}
)  # fmt: skip
COUNTS: Final = frozenset({"row_number", "lag", "lead", "first_value", "last_value", "nth_value", "ntile"})
_MOMENTS: Final = ("now", "today", "tomorrow", "yesterday")
_LETTERS: Final = re.compile("[a-z]+")


def check(tokens: Sequence[Token], calls: Sequence[str], kind: Kind) -> None:
    writes = kind != "select"
    _check_calls(calls, writes)
    _check_words(tokens, kind)
    _check_draws(tokens, calls, kind)
    if writes:
        _check_ordered(tokens, calls)
    if kind == "insert":
        check_insert(tokens)
    if kind == "ddl":
        _check_ddl(tokens, calls)
    if kind in ("insert", "update"):
        _check_defaults(tokens)
    if tokens[0].is_("merge"):
        raise BadRequest("MERGE is refused: it takes rows as they lie on disk: use INSERT ... ON CONFLICT DO UPDATE")


def _check_calls(calls: Sequence[str], writes: bool) -> None:
    for name in calls:
        why = _CALLS.get(name) or next((w for p, w in _PREFIXES.items() if name.startswith(p)), None)
        if why is None and name.startswith("pg_") and (writes or name not in _LOOKS):
            why = _SERVER
        if why is None and writes and name in _UNPACKS:
            why = "it makes times out of texts unseen: take the values out one by one, (j ->> 'at')::timestamptz"
        if why is None and writes and name in _CALLS_WRITING:
            why = "it differs from server to server: give the value as a parameter"
        if why is not None:
            raise BadRequest(f"{name}() is refused: {why}")


def _check_words(tokens: Sequence[Token], kind: Kind) -> None:
    writes = kind != "select"
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.sort == "string":
            if after is not None and after.sort == "string":
                raise BadRequest("a string in two pieces is refused: write it as one")
            if writes and _is_moment(token.value):
                raise BadRequest(
                    f"'{token.value}' is refused: as a date it is the server's own: use now() or CURRENT_DATE, or give "
                    "the text as a parameter"
                )
        if token.sort != "word":
            continue
        if token.value in _SYSTEM_COLUMNS:
            raise BadRequest(f"{token.value} is refused: {_PHYSICAL}")
        if writes and token.value in _WORDS_WRITING:
            raise BadRequest(f"{token.value} is refused in what changes data: it differs from server to server")
        if writes and token.value.startswith("pg_") and token.value not in _LOOKS:
            raise BadRequest(f"{token.value} is refused in what changes data: it tells of one server")
        _check_word(token, after, kind)


def _check_word(token: Token, after: Token | None, kind: Kind) -> None:
    writes = kind != "select"
    follows = "" if after is None else after.value
    if token.value == "concurrently":
        raise BadRequest("CONCURRENTLY is refused: it cannot be part of a transaction: leave it out")
    if token.value in ("unlogged", "tablespace") and kind == "ddl":
        raise BadRequest(f"{token.value.upper()} is refused: it differs from server to server: leave it out")
    if token.value == "tablesample" and writes:
        raise BadRequest("TABLESAMPLE is refused in a statement that changes data: replicas would take other rows")
    if token.value == "distinct" and follows == "on" and writes:
        raise BadRequest("DISTINCT ON is refused in a statement that changes data: use GROUP BY with min or max")
    if token.value == "for" and follows in ("update", "share", "no", "key") and kind != "ddl":
        raise BadRequest(
            "FOR UPDATE is refused: replicas need no locks: put what belongs together in transaction([...])"
        )
    if token.value == "into" and kind == "select":
        raise BadRequest("SELECT ... INTO is refused: write CREATE TABLE ... AS SELECT ...")


def _is_moment(value: str) -> bool:
    if value[:2] in ("E'", "e'"):
        value = value[2:-1].encode("ascii", "ignore").decode("unicode_escape", "ignore")
    words = _LETTERS.findall(value.lower())
    if has_parts(value):
        return True
    return len(words) <= 2 and any(word in _MOMENTS for word in words)


def _check_draws(tokens: Sequence[Token], calls: Sequence[str], kind: Kind) -> None:
    for space, dot, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if space.value == "pg_catalog" and dot.value == "." and name.value in _SHADOWED:
            raise BadRequest(f"pg_catalog.{name.value} is refused: it is the server's own: leave out pg_catalog")
    for (name, bracket), end in zip(pairwise(tokens), tokens[2:], strict=False):
        if name.is_("random") and bracket.value == "(" and end.value != ")":
            raise BadRequest("random(a, b) is refused: it is the server's own: use a + random() * (b - a)")
    if kind in ("insert", "update", "delete") and any(name in _DRAWS for name in calls):
        _check_places(tokens, kind)


def draws(calls: Iterable[str]) -> bool:
    """Does each row draw a number?"""
    return any(name in _DRAWS for name in calls)


def _check_places(tokens: Sequence[Token], kind: Kind) -> None:
    """Where each row draws a number, rows must come in an order: VALUES, ORDER BY, or there is only one."""
    groups: list[bool] = []  # for each parenthesis that is open: is it a query?
    selected = kind == "delete"  # from here on, rows are looked through as they lie on disk
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.value == "(" and token.sort == "op":
            groups.append(after is not None and after.is_("select", "with", "values", "table"))
        elif token.value == ")" and token.sort == "op" and groups:
            groups.pop()
        elif not groups and token.is_("from", "where"):
            selected = True
        elif token.sort in ("word", "name") and token.value in _DRAWS and after is not None and after.value == "(":
            if selected or any(groups):
                raise BadRequest(
                    f"{token.value}() is refused here: each row would draw a number, in the order in which the rows "
                    "lie on disk: draw it in the client, and give it as a parameter"
                )


def _check_ordered(tokens: Sequence[Token], calls: Sequence[str]) -> None:
    """What takes rows one after the other, and can be told to do so in an order."""
    if "any_value" in calls:
        raise BadRequest("any_value() is refused in a statement that changes data: use min() or max()")
    for i, token in enumerate(tokens[:-1]):
        if token.names() and token.value in COLLECTS and tokens[i + 1].value == "(":
            if not _orders(tokens[i + 2 :]):
                raise BadRequest(
                    f"{token.value}(...) without ORDER BY is refused in a statement that changes data: replicas may "
                    f"have the rows in different orders: write {token.value}(... ORDER BY key)"
                )
        if token.is_("array") and tokens[i + 1].value == "(" and _takes_rows(tokens[i + 2 :]):
            if not _orders(tokens[i + 2 :]):
                raise BadRequest(
                    "ARRAY(SELECT ...) without ORDER BY is refused in a statement that changes data: replicas may have "
                    "the rows in different orders: write ARRAY(SELECT ... ORDER BY key)"
                )
        if token.is_("over") and tokens[i + 1].value == "(" and COUNTS & set(calls) and not _orders(tokens[i + 2 :]):
            raise BadRequest(
                f"{min(COUNTS & set(calls))}() with OVER (...) without ORDER BY is refused in what changes "
                "data: replicas may have the rows in different orders: write OVER (ORDER BY key)"
            )


def _takes_rows(tokens: Sequence[Token]) -> bool:
    """Are there rows of a table, before the parenthesis is closed?"""
    depth = 0
    for token in tokens:
        if token.sort == "op" and token.value in "()":
            depth += 1 if token.value == "(" else -1
            if depth < 0:
                return False
        elif token.is_("from", "table"):
            return True
    return False


def _orders(tokens: Sequence[Token]) -> bool:
    """Is there an ORDER BY before the parenthesis is closed?"""
    depth = 0
    for a, b in pairwise(tokens):
        if a.sort == "op" and a.value in "()":
            depth += 1 if a.value == "(" else -1
            if depth < 0:
                return False
        elif depth == 0 and a.is_("order") and b.is_("by"):
            return True
    return False


def check_insert(tokens: Sequence[Token]) -> None:
    """Rows that are selected are inserted, and numbered, in the order in which they come."""
    top = list(_top(tokens))
    if not any(t.is_("values", "default", "select", "table") for t in top):
        raise BadRequest("INSERT without VALUES or SELECT is refused; a SELECT must not stand in parentheses")
    source = next((i for i, t in enumerate(top) if t.is_("select", "table")), None)
    if source is None or not any(t.is_("from", "table") for t in top[source:]):
        return
    if _is_one_row(tokens):
        return
    if not any(a.is_("order") and b.is_("by") for a, b in pairwise(top[source:])):
        raise BadRequest(
            "INSERT ... SELECT without ORDER BY is refused: replicas may have the rows in different orders, and number "
            "them differently: add ORDER BY over a key"
        )


_AGGREGATES: Final = frozenset({"count", "sum", "min", "max", "avg", "bool_and", "bool_or", "every", *COLLECTS})
_MANY: Final = ("group", "union", "except", "intersect", "over", "values")


def _is_one_row(tokens: Sequence[Token]) -> bool:
    """INSERT ... SELECT count(*) FROM t: an aggregate without GROUP BY gives one row. Is there surely one?"""
    select = next((i for i, t in enumerate(tokens) if t.is_("select")), len(tokens))
    if any(t.is_("from", "with", *_MANY) for t in tokens[:select]) or any(t.is_(*_MANY) for t in _top(tokens[select:])):
        return False
    queries: list[bool] = []  # for each parenthesis that is open: is there a query in it?
    for i, token in enumerate(tokens[select:], select):
        after = tokens[i + 1] if i + 1 < len(tokens) else None
        if token.sort == "op" and token.value == "(":
            queries.append(after is not None and after.is_("select", "with", "values", "table"))
        elif token.sort == "op" and token.value == ")" and queries:
            queries.pop()
        elif token.is_("from") and not queries:
            return False
        elif token.is_(*_AGGREGATES) and after is not None and after.value == "(" and not any(queries):
            if tokens[i - 1].value == ".":
                return False
            return not any(t.is_("over") for t in tokens)
    return False


def _check_defaults(tokens: Sequence[Token]) -> None:
    """SET a = DEFAULT: each row might draw a number."""
    sets = next((i for i, t in enumerate(tokens) if t.is_("set")), len(tokens))
    if any(t.is_("default") for t in tokens[sets:]):
        raise BadRequest(
            "SET ... = DEFAULT is refused: it may draw a number for each row, as they lie: give the value itself"
        )


def _top(tokens: Sequence[Token]) -> list[Token]:
    """Those that stand in no parentheses."""
    depth, out = 0, []
    for token in tokens:
        if token.sort == "op" and token.value in "()":
            depth += 1 if token.value == "(" else -1
        elif depth == 0:
            out.append(token)
    return out


def _check_ddl(tokens: Sequence[Token], calls: Sequence[str]) -> None:
    alters = tokens[0].is_("alter")
    selects = any(a.is_("as") and (b.is_("select", "with", "table") or b.value == "(") for a, b in pairwise(tokens))
    drawn = next((name for name in calls if name in _DRAWS), None)
    numbered = next((t.value for t in tokens if t.is_("serial", "bigserial", "smallserial", "identity")), None)
    adds = alters and any(t.is_("add") for t in tokens)
    if (adds and (drawn or numbered)) or (drawn and selects and tokens[1].is_("table")):
        raise BadRequest(
            f"{drawn or numbered} is refused here: the rows that are there would get numbers in the order in which "
            "they lie on disk: add a plain column, and fill it by UPDATE"
        )
    if any(t.is_("function") for t in tokens[1:4]) and tokens[0].is_("create"):
        _check_function(tokens)


def _check_function(tokens: Sequence[Token]) -> None:
    words = {t.value for t in tokens if t.sort == "word"}
    named = next((a.value for a, b in pairwise(tokens[2:]) if a.names() and b.value == "("), "")
    if named in _AGGREGATES:
        raise BadRequest(f"a function with the name of the aggregate {named} is refused: choose another name")
    language = next((b.value for a, b in pairwise(tokens) if a.is_("language")), "")
    if language not in ("sql", "plpgsql"):
        raise BadRequest(f"LANGUAGE {language or '?'} is refused: a function is written in sql or plpgsql")
    trigger = any(a.is_("returns") and b.is_("trigger") for a, b in pairwise(tokens))
    if not trigger and not words & {"immutable", "stable"}:
        raise BadRequest(
            "a function that is VOLATILE is refused, since it may change data unseen: say IMMUTABLE or STABLE, if it "
            "is; only functions that return trigger may be volatile"
        )
    if "atomic" in words:
        raise BadRequest("BEGIN ATOMIC is refused: write the body as $$ ... $$")


def check_body(tokens: Sequence[Token], calls: Sequence[str]) -> None:
    """Of a function or trigger: several statements, and words of plpgsql."""
    _check_calls(calls, True)
    for token in tokens:
        if token.is_("execute"):
            raise BadRequest("EXECUTE in a function is refused: it performs a text that cannot be judged before")
        if token.is_("commit", "rollback", "listen", "notify", "copy", "lock"):
            raise BadRequest(f"{token.value.upper()} in a function is refused: it is refused as a statement, too")
    _check_words(tokens, "update")
    _check_ordered(tokens, calls)
