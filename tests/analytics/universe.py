"""Many simulated runs as one set of traces, so that one Spark job judges them all.

Each run gets names of its own (nodes, objects, clients): groups of nodes that never meet. ``plant_*`` put a violation
into the traces of a run, as a wrong protocol would have left it there.
"""

import re
from pathlib import Path

import msgspec

from framework.analytics.columns import from_records
from framework.sim.oracle import Oracle
from framework.trace.files import Trace
from framework.trace.record import Header, Record, line

_NAMES = re.compile(r'(?<![\w.])([noc]\d+(?:t\d+)?)(?=[@"/:#)\s])')
_header = msgspec.json.Decoder(Header)
_record = msgspec.json.Decoder(Record)


def renamed(trace: Trace, prefix: str) -> Trace:
    """The same trace with ``prefix`` before every name of a node, an object or a client."""
    texts = [_NAMES.sub(rf"{prefix}\1", line(item).decode()) for item in (trace.header, *trace.records)]
    return Trace(_header.decode(texts[0]), [_record.decode(text) for text in texts[1:]])


def numbered(records: list[Record]) -> list[Record]:
    return [msgspec.structs.replace(r, i=n) for n, r in enumerate(records, 1)]


def write(path: Path, runs: dict[str, list[Trace]]) -> None:
    """A run directory with the traces of all. ``runs``: by prefix."""
    import pyarrow.parquet as pq

    every = [renamed(trace, prefix) for prefix, traces in runs.items() for trace in traces]
    objects = {name: placed for trace in every for name, placed in trace.header.objects.items()}
    several = {
        "tran": dict.fromkeys(r for t in every if "tran" in t.header.objects for r in t.header.objects["tran"].replicas)
    }
    objects |= {n: msgspec.structs.replace(objects[n], replicas=tuple(r)) for n, r in several.items() if n in objects}
    for trace in every:
        head = msgspec.structs.replace(trace.header, objects=objects)
        name = head.node if head.life == 1 else f"{head.node}.since{head.life}"
        directory = path / "traces" / name
        directory.mkdir(parents=True)
        (directory / "header.json").write_bytes(line(head))
        pq.write_table(from_records(trace.records), directory / "part-00000.parquet", compression="zstd")
    (path / "run.toml").write_text('ended = "complete"\n')


def oracle(traces: list[Trace]) -> dict[str, set[str]]:
    """Violations by rule, as obo verify finds them, all of them."""
    found: dict[str, set[str]] = {}
    for violation in Oracle(traces, most=1_000_000).judge().violations:
        found.setdefault(violation.rule, set()).add(violation.text)
    return found


def is_stuck(found: dict[str, set[str]]) -> bool:
    """The oracle could not replay all: what it says of the rest is not the whole truth."""
    return any("never sent" in text or "nobody gave" in text for text in found.get("A1", ()))


def _copy(traces: list[Trace], at: int, records: list[Record]) -> list[Trace]:
    return [Trace(t.header, numbered(records)) if n == at else t for n, t in enumerate(traces)]


def _leaves(records: list[Record]) -> list[tuple[int, int]]:
    """(deliver, end) positions of instances that send nothing."""
    senders = {r.sid for r in records if r.event == "send"}
    ends = {r.sid: n for n, r in enumerate(records) if r.event == "end"}
    return [
        (n, ends[r.sid])
        for n, r in enumerate(records)
        if r.event == "deliver" and r.sid in ends and r.sid not in senders
    ]


def plant_swap(traces: list[Trace]) -> list[Trace] | None:
    """Two conflicting deliveries change places on one replica."""
    placed = {name: p for t in traces for name, p in t.header.objects.items()}
    performed = [
        {(r.replica.partition("@")[0], r.invocation) for r in t.records if r.event == "deliver"} for t in traces
    ]
    for at, trace in enumerate(traces):
        records = trace.records
        leaves = _leaves(records)
        for a, a_end in leaves:
            for b, b_end in leaves:
                x, y = records[a], records[b]
                name = x.replica.partition("@")[0]
                pair = {(x.footprint.method, y.footprint.method), (y.footprint.method, x.footprint.method)}
                if not (a_end < b and x.replica == y.replica and pair & set(placed[name].conflicts)):
                    continue
                keyless = x.footprint.keys is None or y.footprint.keys is None
                if not keyless or x.footprint.readonly or y.footprint.readonly:
                    continue
                if not any(
                    {(name, x.invocation), (name, y.invocation)} <= p for n, p in enumerate(performed) if n != at
                ):
                    continue
                fresh = list(records)
                for one, other in ((a, b), (a_end, b_end)):
                    fresh[one] = msgspec.structs.replace(records[other], at=records[one].at)
                    fresh[other] = msgspec.structs.replace(records[one], at=records[other].at)
                return _copy(traces, at, fresh)
    return None


def plant_twice(traces: list[Trace]) -> list[Trace] | None:
    """One request is performed again."""
    for at, trace in enumerate(traces):
        for a, end in _leaves(trace.records):
            sid = "9" + trace.records[a].sid
            again = [msgspec.structs.replace(trace.records[n], sid=sid, at=trace.records[end].at) for n in (a, end)]
            return _copy(traces, at, [*trace.records[: end + 1], *again, *trace.records[end + 1 :]])
    return None


def plant_lost_response(traces: list[Trace]) -> list[Trace] | None:
    """A receipt of all is over without one of the responses."""
    for at, trace in enumerate(traces):
        for n, r in enumerate(trace.records):
            if r.event == "receive" and r.receipt == "crec" and r.complete and len(r.received) > 1 and r.client:
                short = msgspec.structs.replace(r, received=r.received[:-1])
                return _copy(traces, at, [*trace.records[:n], short, *trace.records[n + 1 :]])
    return None


def plant_no_end(traces: list[Trace]) -> list[Trace] | None:
    """A response was received from an instance that never ended."""
    for trace in traces:
        for r in trace.records:
            if r.event == "receive" and r.complete and r.received and r.received[0][1] == "ok" and r.client:
                replica = r.received[0][0]
                for at, other in enumerate(traces):
                    sids = {
                        x.sid
                        for x in other.records
                        if x.event == "deliver" and (x.group, x.replica) == (r.group, replica)
                    }
                    rest = [x for x in other.records if not (x.event == "end" and x.sid in sids)]
                    if len(rest) < len(other.records):
                        return _copy(traces, at, rest)
    return None


def plant_never_received(traces: list[Trace]) -> list[Trace] | None:
    """A response never comes: its caller still waits for it when the node stops, and says so."""
    brought = {text for t in traces for r in t.records for text in r.sessions}  # a client that went on elsewhere had it
    for at, trace in enumerate(traces):
        for r in trace.records:
            if r.event == "receive" and r.client and r.complete and f"{r.group} received" not in brought:
                what = f"{r.sid} waiting for {r.receipt} of {r.group}, no response from {r.received[-1][0]}"
                rest = [x for x in trace.records if x is not r]
                stopped = [msgspec.structs.replace(x, open=(what,)) if x.event == "stop" else x for x in rest]
                return _copy(traces, at, stopped)
    return None


PLANTS = {
    "swap": plant_swap,
    "twice": plant_twice,
    "lost": plant_lost_response,
    "noend": plant_no_end,
    "never": plant_never_received,
}
