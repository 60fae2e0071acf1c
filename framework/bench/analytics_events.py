"""Traces of any length for ``obo bench analytics``: simulated worlds, one after the other, again and again.

Some worlds of ``framework.sim`` are run once, with link faults and nested, asynchronous and one-way calls, all on three
nodes. Each gets objects of its own; all traces of one node are strung together, with numbers, times, clocks and clients
that go on. A world is over before the next one begins, so this is the trace of one long run of three nodes, and as
clean as its parts. It is written as ``obo load`` writes traces. Copies are made of columns, not of records: cheap.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from framework.errors import OboError
from framework.sim.run import Options, run
from framework.trace.files import Trace
from framework.trace.record import Header, Placed, Record, line

WORLDS = 16
SHAPE: dict[str, object] = {"nodes": 3, "clients": 8, "calls": 30, "cancel": 0.0}
_PART, _BATCH = 200_000, 20_000  # rows of a file, and of what is compressed together: about those of obo load
_SHIFTED = ("group", "sid", "cid")  # CLOCK:rest
_CLOCK = re.compile(r"^(\d+):(.*)$", re.S)


class World(msgspec.Struct):
    """One simulated run as columns: per node a table, and the parts of its identifiers."""

    tables: dict[str, Any]
    clocks: dict[str, dict[str, tuple[Any, Any]]]  # per node and column: clocks, and what follows them
    placed: dict[str, Placed]
    lasts: float
    highest: int  # clock
    events: int


def make(path: Path, events: int, tell: Callable[[str], None] = lambda _: None) -> int:
    """A run directory with at least so many records; how many there are."""
    worlds = []
    for seed in range(WORLDS):
        tell(f"simulating world {seed + 1} of {WORLDS}")
        worlds.append(_world(seed))
    objects = {name: placed for world in worlds for name, placed in world.placed.items()}
    nodes = sorted({node for world in worlds for node in world.tables})
    writers = {node: _Writer(path, node, tuple(nodes), objects) for node in nodes}
    made = block = clock = 0
    at = 0.0
    while made < events:
        world = worlds[block % len(worlds)]
        for node, writer in writers.items():
            writer.add(world, node, block, clock, at)
        made += world.events
        block += 1
        clock += world.highest + 1
        at += world.lasts + 10.0
        if block % 50 == 0:
            tell(f"{made:,} events written")
    for writer in writers.values():
        made += writer.close(at)
    (path / "run.toml").write_text(f'ended = "complete"\nworkload = "{WORLDS} simulated worlds, {block} in a row"\n')
    return made


def _world(seed: int) -> World:
    import pyarrow as pa

    from framework.analytics.columns import from_records

    done = run(seed, Options(shape=SHAPE, faults="links"))
    if done.verdict.violations:
        raise OboError(f"the simulated world {seed} breaks the protocol: {done.verdict.violations[0]}")
    tables: dict[str, Any] = {}
    clocks: dict[str, dict[str, tuple[Any, Any]]] = {}
    placed: dict[str, Placed] = {}
    lasts, highest, events = 0.0, 0, 0
    for trace in (_own_names(t, seed) for t in done.traces):
        node = trace.header.node
        records = [r for r in trace.records if r.event not in ("state", "stop")]
        tables[node] = from_records(records)
        clocks[node] = {}
        for column in _SHIFTED:
            parts = [_CLOCK.match(getattr(r, column)) for r in records]
            numbers = [int(m[1]) if m else None for m in parts]
            clocks[node][column] = (
                pa.array(numbers, pa.int64()),
                pa.array([m[2] if m else None for m in parts], pa.string()),
            )
            highest = max([highest, *(n for n in numbers if n is not None)])
        placed |= trace.header.objects
        lasts = max([lasts, *(r.at for r in records)])
        events += len(records)
    return World(tables, clocks, placed, lasts, highest, events)


_NAMES = re.compile(r'(?<![\w.])(o\d+)(?=[@"])')


def _own_names(trace: Trace, seed: int) -> Trace:
    items: list[Header | Record] = [trace.header, *trace.records]
    texts = [_NAMES.sub(rf"w{seed}\1", line(item).decode()) for item in items]
    return Trace(msgspec.json.decode(texts[0], type=Header), [msgspec.json.decode(t, type=Record) for t in texts[1:]])


class _Writer:
    """The trace of one node, in parts."""

    def __init__(self, path: Path, node: str, nodes: tuple[str, ...], objects: dict[str, Placed]) -> None:
        self.node = node
        self.directory = path / "traces" / node
        self.directory.mkdir(parents=True)
        (self.directory / "header.json").write_bytes(line(Header(node=node, view=1, members=nodes, objects=objects)))
        self.count = self.parts = self.rows = 0
        self._file: Any = None
        self._waiting: list[Any] = []

    def add(self, world: World, node: str, block: int, clock: int, at: float) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        table = world.tables[node]
        prefix = f"b{block}"
        changed = {"i": pc.add(table["i"], 0), "at": pc.add(table["at"], at)}
        changed["i"] = pa.array(range(self.count + 1, self.count + 1 + table.num_rows), pa.int64())
        for column, (numbers, rest) in world.clocks[node].items():
            text = pc.cast(pc.add(numbers, clock), pa.string())
            changed[column] = pc.fill_null(pc.binary_join_element_wise(text, rest, ":"), "")
        for column in ("invocation", "client"):
            has = pc.not_equal(table[column], "")
            changed[column] = pc.if_else(has, pc.binary_join_element_wise(prefix, table[column], ""), "")
        changed["sessions"] = _sessions(table["sessions"].combine_chunks(), clock)
        for column, values in changed.items():
            n = table.schema.get_field_index(column)
            table = table.set_column(n, table.schema.field(n), values)
        self.count += table.num_rows
        self._write(table)

    def _write(self, table: Any, last: bool = False) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._waiting.append(table)
        if not last and sum(one.num_rows for one in self._waiting) < _BATCH:
            return
        table, self._waiting = pa.concat_tables(self._waiting), []
        if self._file is None:
            name = self.directory / f"part-{self.parts:05d}.parquet"
            self._file = pq.ParquetWriter(name, table.schema, compression="zstd")
            self.parts += 1
            self.rows = 0
        self._file.write_table(table)
        self.rows += table.num_rows
        if last or self.rows >= _PART:
            self._file.close()
            self._file = None

    def close(self, at: float) -> int:
        from framework.analytics.columns import from_records

        self._write(from_records([Record(i=self.count + 1, node=self.node, at=at, event="stop", view=1)]), last=True)
        return 1


def _sessions(lists: Any, clock: int) -> Any:
    """``CLOCK:rest sent``, in lists; mostly they are empty."""
    import pyarrow as pa

    moved = [_CLOCK.match(text) for text in lists.flatten().to_pylist()]
    fresh = [f"{int(m[1]) + clock}:{m[2]}" if m else "" for m in moved]
    return pa.ListArray.from_arrays(lists.offsets, pa.array(fresh, pa.string()))
