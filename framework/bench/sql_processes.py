"""The processes of ``obo bench sql``: nodes and their clients, plain SQLite, plain PostgreSQL and its clients."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from framework import connect
from framework.bench.processes import NODES, children_of, cpu_of, declared, rss_of, serve, start_client
from framework.bench.sql import System
from framework.bench.sql_side import DATABASE, TIMEOUT
from framework.errors import Unavailable
from framework.testing.postgres import servers
from framework.testing.sql_work import FILL, MAKE, fill

CHUNK = 100  # rows in a call, when tables are filled
_ECHO = "framework.bench.echo:Echo"
_DATABASE = "objects.sql:Database"


@contextmanager
def running(payload: int) -> Iterator[tuple[dict[str, System], list[str], list[str]]]:
    """The systems, the addresses of the nodes, and notes on what is left out. All ends with the ``with``.

    All files are in one directory, so on one disk."""
    with TemporaryDirectory(prefix="obo-bench-") as directory, ExitStack() as stack:
        where, notes = Path(directory), list[str]()
        systems, addresses = _nodes(stack, where, payload)
        plain = start_client(stack, "sqlite", f"{where / 'plain.sqlite'},{payload}", where)
        systems["sqlite"] = System(plain, [])
        try:
            systems["postgres"] = _postgres(stack, where, payload)
        except Unavailable as error:
            notes.append(f"the rows of PostgreSQL are left out: {error}")
        yield systems, addresses, notes


def _nodes(stack: ExitStack, where: Path, payload: int) -> tuple[dict[str, System], list[str]]:
    lines = [line for i, n in enumerate(NODES) for line in declared(f"echo{i + 1}", _ECHO, [n])]
    lines += [*declared(DATABASE, _DATABASE, NODES), "[serve]", f'data = "{where / "data"}"']
    addresses, nodes = serve(stack, where, lines)
    _prepare(addresses, payload)
    load = start_client(stack, "sql", ",".join(addresses), where)
    return {"obo": System(load, nodes)}, addresses


def _prepare(addresses: Sequence[str], payload: int) -> None:
    with connect(addresses, TIMEOUT) as orb:
        db = orb.object(DATABASE)
        for text in MAKE:
            db.execute(text)
        rows = fill(payload)
        for first in range(0, len(rows), CHUNK):
            db.executemany(FILL, rows[first : first + CHUNK])


def _postgres(stack: ExitStack, where: Path, payload: int) -> System:
    if find_spec("psycopg") is None:
        raise Unavailable("psycopg is missing: pip install 'obo[postgres]'")
    (server,) = stack.enter_context(servers(1, fsync=True))
    load = start_client(stack, "postgres", f"{server.url()},{payload}", where)
    return System(load, [Family("postgres", int((server.data / "postmaster.pid").read_text().split()[0]))])


class Family:
    """A server with a process for each of its clients."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self._pid = pid

    def cpu(self) -> float | None:
        alive = [cpu_of(pid) or 0.0 for pid in children_of(self._pid)]
        first = cpu_of(self._pid, waited=True)
        return None if first is None else first + sum(alive)

    def rss(self) -> float | None:
        """Of its first process: what they share would be counted many times."""
        return rss_of(self._pid)
