"""The columns of a run directory: what a trace record and a client record look like in Arrow and Parquet.

Needs pyarrow (``pip install 'obo[load]'``) and no Spark: ``obo load`` writes these columns, ``obo verify`` and the
Spark jobs read them. docs/load.md lists them.

A trace record keeps the names of its fields (framework/trace/record.py). Defaults are written as defaults, not left out
as in JSON: so a column never mixes "not there" with a value, and reading back gives an equal Record. Only a missing
footprint is null, and the keys of a call without key: there null and the empty list mean different things.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec
import pyarrow as pa

from framework.errors import BadTrace
from framework.footprint import Footprint
from framework.trace.record import Record

_KEYS: Final = pa.list_(pa.struct([("key", pa.string()), ("mode", pa.string())]))
_FOOTPRINT: Final = pa.struct([("method", pa.string()), ("keys", _KEYS), ("readonly", pa.bool_())])

#: Field of a Record -> type of its column, in the order of the Record.
TRACE: Final = pa.schema(
    [
        pa.field(name, kind, nullable=name == "footprint")
        for name, kind in {
            "i": pa.int64(),
            "node": pa.string(),
            "at": pa.float64(),
            "event": pa.string(),
            "view": pa.int64(),
            "group": pa.string(),
            "replica": pa.string(),
            "sid": pa.string(),
            "no": pa.int64(),
            "cid": pa.string(),
            "invocation": pa.string(),
            "client": pa.string(),
            "sessions": pa.list_(pa.string()),
            "kind": pa.string(),
            "transmission": pa.string(),
            "receipt": pa.string(),
            "footprint": _FOOTPRINT,
            "parts": pa.list_(pa.struct([("object", pa.string()), ("footprint", _FOOTPRINT)])),
            "dests": pa.list_(pa.struct([("replica", pa.string()), ("seq", pa.int64())])),
            "stamp": pa.string(),
            "way": pa.string(),
            "entries": pa.int64(),
            "waived": pa.list_(pa.string()),
            "received": pa.list_(pa.struct([("replica", pa.string()), ("status", pa.string())])),
            "complete": pa.bool_(),
            "committed": pa.bool_(),
            "digest": pa.string(),
            "performed": pa.int64(),
            "open": pa.list_(pa.string()),
            "members": pa.list_(pa.string()),
            "since": pa.list_(pa.int64()),
            "to": pa.string(),
            "ticket": pa.string(),
            "why": pa.string(),
            "cancelled": pa.bool_(),
            "tran": pa.string(),
        }.items()
    ]
)


class ClientRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One call as a client of ``obo load`` saw it. Times are unix seconds of the client's machine."""

    client: str  # as in the trace's field of that name
    process: int  # number of the client process
    number: int  # n of the invocation client/n
    invocation: str
    object: str
    method: str
    keys: tuple[str, ...] = ()
    kind: str = "sync"  # sync, async or oneway
    transmission: str = "mcast"  # ucast, mcast or pcast
    receipt: str = ""
    node: str = ""  # the home node when the call ended; empty: unknown
    payload: int = 0  # bytes of filling in the arguments
    intended: float  # when it was due (open loop); else when it was sent
    sent: float
    done: float
    status: str = "ok"  # or the name of the error
    detail: str = ""
    phase: str = "run"  # or warmup
    conflict: float = 0.0  # the conflict ratio of the setting at that time, 0..1
    ucast: float = 0.0  # the share of requests by ucast of that setting, 0..1
    workload: str = ""


CLIENT: Final = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in {
            "client": pa.string(),
            "process": pa.int32(),
            "number": pa.int64(),
            "invocation": pa.string(),
            "object": pa.string(),
            "method": pa.string(),
            "keys": pa.list_(pa.string()),
            "kind": pa.string(),
            "transmission": pa.string(),
            "receipt": pa.string(),
            "node": pa.string(),
            "payload": pa.int32(),
            "intended": pa.float64(),
            "sent": pa.float64(),
            "done": pa.float64(),
            "status": pa.string(),
            "detail": pa.string(),
            "phase": pa.string(),
            "conflict": pa.float64(),
            "ucast": pa.float64(),
            "workload": pa.string(),
        }.items()
    ]
)


def from_records(records: Sequence[Record]) -> pa.Table:
    """Trace records as a table of TRACE."""
    return _table(TRACE, records, _OUT)


def to_records(table: pa.Table, source: str = "table") -> list[Record]:
    """The records of such a table; BadTrace names the source and the row if it is none of ours."""
    columns = _columns(table, TRACE, source)
    for name, back in _IN.items():
        columns[name] = [back(value) for value in columns[name]]
    return _rows(columns, Record, source)


def from_client_records(records: Sequence[ClientRecord]) -> pa.Table:
    return _table(CLIENT, records, {})


def to_client_records(table: pa.Table, source: str = "table") -> list[ClientRecord]:
    columns = _columns(table, CLIENT, source)
    columns["keys"] = [tuple(value) for value in columns["keys"]]
    return _rows(columns, ClientRecord, source)


def _table(schema: pa.Schema, records: Sequence[msgspec.Struct], convert: Mapping[str, Any]) -> pa.Table:
    arrays = []
    for field in schema:
        get, turn = attrgetter(field.name), convert.get(field.name)
        values = list(map(get, records)) if turn is None else [turn(get(r)) for r in records]
        arrays.append(pa.array(values, type=field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _columns(table: pa.Table, schema: pa.Schema, source: str) -> dict[str, list[Any]]:
    """As Python values. Columns may stand in another order (Spark's do), but all must be there, and no others."""
    missing, extra = set(schema.names) - set(table.column_names), set(table.column_names) - set(schema.names)
    if missing or extra:
        told = [f"no column {', '.join(sorted(missing))}"] * bool(missing)
        told += [f"unknown column {', '.join(sorted(extra))}"] * bool(extra)
        raise BadTrace(f"{source}: {'; '.join(told)}: written by another version?")
    try:
        return {field.name: table.column(field.name).cast(field.type).to_pylist() for field in schema}
    except pa.ArrowException as e:
        raise BadTrace(f"{source}: {e}") from None


def _rows(columns: Mapping[str, Iterable[Any]], kind: type[Any], source: str) -> list[Any]:
    names = tuple(columns)
    out = []
    for row, values in enumerate(zip(*columns.values(), strict=True), 1):
        try:
            out.append(msgspec.convert(dict(zip(names, values, strict=True)), kind))
        except msgspec.ValidationError as e:
            raise BadTrace(f"{source}: row {row}: {e}") from None
    return out


def _footprint_out(found: Footprint | None) -> dict[str, Any] | None:
    if found is None:
        return None
    keys = None if found.keys is None else [{"key": k, "mode": m} for k, m in found.keys]
    return {"method": found.method, "keys": keys, "readonly": found.readonly}


def _footprint_in(found: dict[str, Any] | None) -> list[Any] | None:
    """As msgspec reads a Footprint from JSON."""
    if found is None:
        return None
    keys = None if found["keys"] is None else [(k["key"], k["mode"]) for k in found["keys"]]
    return [found["method"], keys, found["readonly"]]


#: How a field goes into its column, and back, where both are not the same.
_OUT: Final[Mapping[str, Any]] = {
    "footprint": _footprint_out,
    "parts": lambda parts: [{"object": o, "footprint": _footprint_out(f)} for o, f in parts],
    "dests": lambda dests: [{"replica": r, "seq": s} for r, s in dests],
    "received": lambda received: [{"replica": r, "status": s} for r, s in received],
}
_IN: Final[Mapping[str, Any]] = {
    "footprint": _footprint_in,
    "parts": lambda parts: [(p["object"], _footprint_in(p["footprint"])) for p in parts],
    "dests": lambda dests: [(d["replica"], d["seq"]) for d in dests],
    "received": lambda received: [(r["replica"], r["status"]) for r in received],
}
