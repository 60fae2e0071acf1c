"""What Spark is told about the files it reads: nothing is guessed from the data.

TRACE and CLIENT are the columns of a run directory (framework.analytics.columns; a test compares the two). JSON lines
have the same fields, but lists of mixed types where Parquet has structs, and leave defaults out: JSON_TRACE reads those
fields as text, and ``from_json_lines`` makes the same columns of them.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

FOOTPRINT = "struct<method:string,keys:array<struct<key:string,mode:string>>,readonly:boolean>"

_PLAIN = {
    "i": "bigint", "node": "string", "at": "double", "event": "string", "view": "bigint", "group": "string",
    "replica": "string", "sid": "string", "no": "bigint", "cid": "string", "invocation": "string", "client": "string",
    "sessions": "array<string>", "kind": "string", "transmission": "string", "receipt": "string",
}  # fmt: skip
_MIXED = {
    "footprint": FOOTPRINT,
    "parts": f"array<struct<object:string,footprint:{FOOTPRINT}>>",
    "dests": "array<struct<replica:string,seq:bigint>>",
}
_REST = {
    "stamp": "string", "way": "string", "entries": "bigint", "waived": "array<string>",
    "received": "array<struct<replica:string,status:string>>", "complete": "boolean", "committed": "boolean",
    "digest": "string", "performed": "bigint", "open": "array<string>", "members": "array<string>",
    "since": "array<bigint>", "to": "string", "ticket": "string", "why": "string",
    "cancelled": "boolean", "tran": "string",
}  # fmt: skip
TRACE_FIELDS = _PLAIN | _MIXED | _REST
CLIENT_FIELDS = {
    "client": "string", "process": "int", "number": "bigint", "invocation": "string", "object": "string",
    "method": "string", "keys": "array<string>", "kind": "string", "transmission": "string", "receipt": "string",
    "node": "string", "payload": "int", "intended": "double", "sent": "double", "done": "double", "status": "string",
    "detail": "string", "phase": "string", "conflict": "double", "ucast": "double", "workload": "string",
}  # fmt: skip
_JSON_FIELDS = TRACE_FIELDS | {
    "footprint": "string",
    "parts": "array<array<string>>",
    "dests": "array<array<string>>",
    "received": "array<array<string>>",
    "_corrupt": "string",
}
_DEFAULTS: dict[str, object] = {
    "no": -1, "entries": 0, "complete": True, "committed": True, "performed": 0, "cancelled": False,
}  # fmt: skip


def ddl(fields: dict[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in fields.items())


TRACE = ddl(TRACE_FIELDS)
CLIENT = ddl(CLIENT_FIELDS)
JSON_TRACE = ddl(_JSON_FIELDS)


def from_json_lines(lines: DataFrame) -> DataFrame:
    """Columns of JSON_TRACE as those of TRACE, with the defaults that JSON leaves out. Other columns stay."""
    made: dict[str, Column] = {}
    for name, kind in TRACE_FIELDS.items():
        column = F.col(name)
        if name == "footprint":
            made[name] = _footprint(column)
        elif name == "parts":
            made[name] = F.transform(
                _or_empty(column, kind), lambda p: F.struct(p[0].alias("object"), _footprint(p[1]).alias("footprint"))
            )
        elif name == "dests":
            made[name] = F.transform(
                _or_empty(column, kind), lambda d: F.struct(d[0].alias("replica"), d[1].cast("bigint").alias("seq"))
            )
        elif name == "received":
            made[name] = F.transform(
                _or_empty(column, kind), lambda d: F.struct(d[0].alias("replica"), d[1].alias("status"))
            )
        elif kind.startswith("array"):
            made[name] = _or_empty(column, kind)
        else:
            made[name] = F.coalesce(column, F.lit(_DEFAULTS.get(name, "" if kind == "string" else None)))
    return lines.withColumns(made)


def _or_empty(column: Column, kind: str) -> Column:
    return F.coalesce(column, F.array().cast("array<array<string>>" if "struct" in kind else kind))


def _footprint(text: Column) -> Column:
    """``["deposit",[["ann","w"]],false]``: the last two may be missing."""
    parts = F.from_json(text, "array<string>")
    keys = F.transform(
        F.from_json(F.get(parts, F.lit(1)), "array<array<string>>"),
        lambda k: F.struct(k[0].alias("key"), k[1].alias("mode")),
    )
    readonly = F.coalesce(F.get(parts, F.lit(2)) == "true", F.lit(False))
    return F.when(
        text.isNotNull(),
        F.struct(F.get(parts, F.lit(0)).alias("method"), keys.alias("keys"), readonly.alias("readonly")),
    )
