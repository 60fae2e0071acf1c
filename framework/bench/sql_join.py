"""``obo bench join``: a replica without anything gets a large database from the others, while clients write.

Nodes are processes. The load is an open loop, a third (``--share``) of what the nodes were measured to take. One node
is killed with -9, its directory is removed, it is started again: how long until it is ready, what clients noticed, and
whether all replicas are equal at the end, with every acknowledged write in them.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from framework.bench.back import wait_back
from framework.bench.peaks import Peaks
from framework.bench.steady import Steady, capacity, middle, pause
from framework.errors import BadRequest
from framework.orb.client import Orb
from framework.testing.clusters import Cluster, cluster
from framework.testing.plan import DATA
from framework.testing.postgres import Server, servers
from objects.sql import Database
from objects.sql.client import Sql

NODES = ("n1", "n2", "n3")
VICTIM = NODES[-1]
CLIENTS = 8
SHARE = 1 / 3
IN_FLIGHT = 64
ROWS = 10  # of ballast in a statement
BYTES = 100_000  # in a row, about
CALL = 120.0
BACK = 900.0

COUNT = "CREATE TABLE tallies (client INTEGER PRIMARY KEY, count INTEGER NOT NULL)"
ADD = "UPDATE tallies SET count = count + 1 WHERE client = ?"
BALLAST = {
    "sqlite": (
        "CREATE TABLE ballast (id INTEGER PRIMARY KEY, body BLOB)",
        "WITH RECURSIVE s (n) AS (VALUES (:first) UNION ALL SELECT n + 1 FROM s WHERE n < :last) "
        f"INSERT INTO ballast SELECT n, randomblob({BYTES}) FROM s",
    ),
    "postgres": (
        "CREATE TABLE ballast (id INTEGER PRIMARY KEY, body TEXT)",
        "INSERT INTO ballast SELECT n, (SELECT string_agg(md5(n::text || '-' || i::text), '' ORDER BY i) FROM "
        f"generate_series(1, {BYTES // 32}) AS i) FROM generate_series(CAST(:first AS int), CAST(:last AS int)) AS n "
        "ORDER BY n",
    ),
}

Progress = Callable[[str], None]


class Plan(msgspec.Struct, frozen=True):
    megabytes: int = 1000
    postgres: bool = False
    seconds: float = 5.0  # of load before and after
    share: float = SHARE  # of what the nodes can take


class Result(msgspec.Struct):
    """What ``--json`` writes. Pauses: the longest time in which no client got an answer."""

    database: str
    megabytes: float  # of the files or tables of a replica
    join_s: float  # from the start of the process until all know that it is ready
    mb_per_s: float
    rate: float  # calls in a second that are sent
    calls: int
    before_ms: float  # median latency
    during_ms: float
    pause_before_ms: float
    pause_during_ms: float
    memory_mb: dict[str, float]  # the most that each node had, as far as it was asked
    waiting: dict[str, int]  # and the most requests that waited there
    errors: list[str]
    digests_s: float
    equal: bool
    lost: int
    twice: int
    plan: Plan
    machine: dict[str, str | int | None] = {}

    @property
    def good(self) -> bool:
        return self.equal and not (self.errors or self.lost or self.twice)


SHOWN = tuple(f for f in Result.__struct_fields__ if f not in ("errors", "plan", "machine"))


def reports(plan: Plan) -> int:
    return plan.megabytes + 6


def measure(plan: Plan, progress: Progress) -> Result:
    with _nodes(plan) as (c, directory, started):
        orbs = [c.connect(NODES[i % 2], timeout=CALL) for i in range(CLIENTS)]
        _fill(plan, Sql(orbs[0], "db", timeout=CALL), progress)
        submits = [_adding(orb, i) for i, orb in enumerate(orbs)]
        progress("how much the nodes can take")
        most = capacity(submits, IN_FLIGHT, plan.seconds)
        if not most:
            raise BadRequest("a call failed before anything was done to the nodes")
        counted = _tallies(orbs[0])
        with Steady(submits, most * plan.share) as load, Peaks(c) as peaks:
            times = _join(plan, c, directory, started, progress)
        progress("comparing the replicas")
        return _result(plan, times, load, peaks, counted, orbs[0], directory)


class _Times(msgspec.Struct):
    quiet: float  # from here on, with all replicas
    start: float  # of the join
    end: float


def _join(plan: Plan, c: Cluster, directory: Path, started: dict[str, Server], progress: Progress) -> _Times:
    progress("load, with three replicas")
    quiet = time.monotonic()
    time.sleep(plan.seconds)
    progress(f"{VICTIM} is killed, and what it had is removed")
    c.crash(VICTIM)
    time.sleep(plan.seconds)
    shutil.rmtree(directory / DATA / VICTIM)
    if started:
        started[VICTIM].drop("join")
        started[VICTIM].create("join")
    progress(f"{VICTIM} joins")
    start = time.monotonic()
    c.restart(VICTIM)
    wait_back(c, VICTIM, (), BACK)
    end = time.monotonic()
    time.sleep(plan.seconds)
    return _Times(quiet, start, end)


def _result(plan: Plan, times: _Times, load: Steady, peaks: Peaks, counted: int, orb: Orb, directory: Path) -> Result:
    quiet, start, end = times.quiet, times.start, times.end
    before, during = load.between(quiet, quiet + plan.seconds), load.between(start, end)
    compared = time.monotonic()
    digests = Sql(orb, "db", timeout=3 * CALL).digests()
    compared = time.monotonic() - compared
    size = _size(directory, orb, plan)
    lost, twice = _lost(orb, counted, load)
    return Result(
        database="postgres" if plan.postgres else "sqlite",
        megabytes=round(size, 1),
        join_s=round(end - start, 2),
        mb_per_s=round(size / (end - start), 1),
        rate=round(len(load.acks) / (load.acks[-1].at - load.acks[0].at)),
        calls=len(load.acks),
        before_ms=_ms(middle(before)),
        during_ms=_ms(middle(during)),
        pause_before_ms=_ms(pause(before, quiet, quiet + plan.seconds).seconds),
        pause_during_ms=_ms(pause(during, start, end).seconds),
        memory_mb=peaks.memory,
        waiting=peaks.waiting,
        errors=[text for _, text in load.errors],
        digests_s=round(compared, 2),
        equal=digests.equal and not digests.missing,
        lost=lost,
        twice=twice,
        plan=plan,
    )


@contextmanager
def _nodes(plan: Plan) -> Iterator[tuple[Cluster, Path, dict[str, Server]]]:
    with TemporaryDirectory(prefix="obo-bench-") as name, ExitStack() as ends:
        started, options = {}, None
        if plan.postgres:
            found = ends.enter_context(servers(len(NODES), settings={"max_wal_size": "2GB"}))
            started = dict(zip(NODES, found, strict=True))
            options = {"db": {"urls": {node: server.create("join") for node, server in started.items()}}}
        made = cluster(
            {"db": Database}, NODES, processes=True, trace=Path(name), links=False, traces=False, options=options
        )
        yield ends.enter_context(made), Path(name), started


def _fill(plan: Plan, db: Sql, progress: Progress) -> None:
    make, fill = BALLAST["postgres" if plan.postgres else "sqlite"]
    for text in (make, COUNT):
        db.execute(text)
    db.executemany("INSERT INTO tallies VALUES (?, 0)", [(i,) for i in range(CLIENTS)])
    for first in range(0, plan.megabytes * (1_000_000 // BYTES), ROWS):
        progress(f"filling: {first * BYTES // 1_000_000} of {plan.megabytes} MB")
        db.execute(fill, {"first": first, "last": first + ROWS - 1})


def _adding(orb: Orb, client: int) -> Callable[[], object]:
    execute = orb.object(Database, "db").execute
    return lambda: execute.submit(ADD, [client])


def _tallies(orb: Orb) -> int:
    return int(Sql(orb, "db", timeout=CALL).query("SELECT sum(count) FROM tallies", read="linearizable").scalar())


def _lost(orb: Orb, counted: int, load: Steady) -> tuple[int, int]:
    """At the replica that has joined: (acknowledged, and not there; there, and never called)."""
    method = orb.object(Database, "db").query
    replies = orb.crec(orb.mcast(method.request("SELECT sum(count) FROM tallies")))
    there = min((int(r.value.scalar()) for r in replies), default=0) - counted
    return max(0, len(load.acks) - there), max(0, there - load.sent)


def _size(directory: Path, orb: Orb, plan: Plan) -> float:
    """Megabytes of a replica."""
    if plan.postgres:
        found = Sql(orb, "db", timeout=CALL).query("SELECT pg_database_size(current_database())")
        return int(found.scalar()) / 1e6
    return (directory / DATA / VICTIM / "stores" / "db" / "database.sqlite").stat().st_size / 1e6


def _ms(seconds: float) -> float:
    return round(1e3 * seconds, 1)
