"""A process that writes to a store until it is killed, and says what was confirmed: ``directory replica...``."""

import asyncio
import sys
from pathlib import Path

from framework.ids import Node, Replica
from framework.store import Journal, Store


def record(replica: str, position: int) -> bytes:
    return f"{replica} {position} ".encode() * (position % 50 + 1)


async def write(store: Store, journal: Journal) -> None:
    """Several are on their way at any time; now and then a checkpoint."""
    while True:
        position = journal.append(record(journal.replica, journal.last + 1))
        for _ in range(position % 7):
            position = journal.append(record(journal.replica, journal.last + 1))
        await journal.committed(position)
        sys.stdout.write(f"{journal.replica} {position}\n")
        sys.stdout.flush()
        if position % 11 == 0:
            await store.remember(f"{position}".encode())
            sys.stdout.write(f"node {position}\n")
        if position % 5 == 0:
            await journal.checkpoint([f"{position}".encode(), b"x" * 5000], position)


async def main(directory: str, *replicas: str) -> None:
    store = Store(Path(directory), Node("n1"), segment_bytes=20_000)
    journals = [store.journal(Replica(name)) for name in replicas]
    await asyncio.gather(*(write(store, journal) for journal in journals))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
