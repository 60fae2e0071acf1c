"""What group commit gives: confirmed appends per second, against a sync for each record, in the same run.

``python -m framework.store.bench DIRECTORY`` makes a directory inside it, removes it, and writes JSON. Callers are
coroutines of one loop; each appends a record and waits until it is on disk, as a node does for each call.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from framework.ids import Node, Replica
from framework.store.store import Store

RECORD_BYTES = 300
SECONDS = 1.0
ROUNDS = 3


class Measured(msgspec.Struct):
    """Appends per second: the median of the rounds, and its ratio to one sync per record."""

    callers: int
    journals: int
    per_second: float
    over_sync_each: float


class Result(msgspec.Struct):
    record_bytes: int
    sync_each_per_second: float
    append_us: float
    grouped: list[Measured]


def sync_each(directory: Path) -> float:
    """The simplest that is safe: write, sync, next."""
    fd = os.open(directory / "each", os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    record, count, start = bytes(RECORD_BYTES), 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        os.pwrite(fd, record, count * RECORD_BYTES)
        os.fdatasync(fd)
        count += 1
    os.close(fd)
    return count / (time.perf_counter() - start)


async def grouped(directory: Path, callers: int, journals: int) -> float:
    with tempfile.TemporaryDirectory(dir=directory) as place, Store(Path(place), Node("n1")) as store:
        opened = [store.journal(Replica(f"o{i}@n1")) for i in range(journals)]
        record, start = bytes(RECORD_BYTES), time.perf_counter()

        async def call(number: int) -> int:
            journal, count = opened[number % journals], 0
            while time.perf_counter() - start < SECONDS:
                await journal.committed(journal.append(record))
                count += 1
            return count

        count = sum(await asyncio.gather(*map(call, range(callers))))
        return count / (time.perf_counter() - start)


def append_us(directory: Path, count: int = 20_000) -> float:
    """What an append costs the loop, while the writer is at work."""
    with tempfile.TemporaryDirectory(dir=directory) as place, Store(Path(place), Node("n1")) as store:
        journal, record, start = store.journal(Replica("o@n1")), bytes(RECORD_BYTES), time.perf_counter()
        for _ in range(count):
            journal.append(record)
        return (time.perf_counter() - start) / count * 1e6


def measure(directory: Path) -> Result:
    cases = [(1, 1), (10, 1), (100, 1), (1000, 1), (100, 10)]
    each: list[float] = []
    found: dict[tuple[int, int], list[float]] = {case: [] for case in cases}
    for _ in range(ROUNDS):  # in turns: the machine may be slower in one of them
        each.append(sync_each(directory))
        for case in cases:
            found[case].append(asyncio.run(grouped(directory, *case)))
    base = _median(each)
    lines = [Measured(*case, round(_median(found[case])), round(_median(found[case]) / base, 2)) for case in cases]
    return Result(RECORD_BYTES, round(base), round(append_us(directory), 2), lines)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as inside:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(measure(Path(inside)))) + b"\n")
