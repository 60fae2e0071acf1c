"""Calls that leave their home node together (docs/orb.md), over real processes: some raise, some conflict; nodes are
killed with SIGKILL while convoys are under way. Each acknowledged call has happened once, the traces satisfy the
oracle, and there were convoys."""

import asyncio
import threading
import time

import pytest

from framework import Object, OboError, RemoteError, conflict_matrix, method
from framework.testing import cluster
from objects.counter import Counter
from objects.sql import Database
from tests.cli.run_obo import obo
from tests.cluster.test_durable import restart_all
from tests.cluster.test_membership import until
from tests.tiers import only_full

WAIT = 60.0
BURST = 24  # calls that a client has under way
BAD = 5  # each fifth call raises
PAUSE = 0.4  # seconds between two bursts, while nobody waits for calls: the oracle has to read all of them


@conflict_matrix(write=("write", "lines"), count=("tallies",))
class Book(Object):
    """``write`` tells its order, ``count`` does not. Both raise after they have changed something."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.counts: dict[str, int] = {}

    @method
    def write(self, line: str, bad: bool) -> int:
        self.written.append(line)
        if bad:
            raise ValueError(f"{line} on purpose")
        return len(self.written)

    @method(key="tag")
    def count(self, tag: str, bad: bool) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if bad:
            raise ValueError(f"{tag} on purpose")

    @method(readonly=True)
    def lines(self) -> list[str]:
        return self.written

    @method(readonly=True)
    def tallies(self) -> dict[str, int]:
        return self.counts


class Kept(Book):
    """On disk: its calls travel alone."""

    durable = True


class Lines:
    """Calls of a book: a burst of lines, then one that is counted, and so on."""

    def __init__(self, cls):
        self.objects = {"book": cls}

    def prepare(self, orb):
        pass

    def submit(self, orb, tag, number, bad):
        book = orb.object("book")
        if number // BURST % 2:
            return book.count.submit(tag, bad)
        return book.write.submit(f"{tag}-{number}", bad)

    def found(self, orb):
        """By replica: numbers of lines, by client, and how many were counted of each."""
        book = orb.object("book")
        lines, tallies = (orb.crec(orb.mcast(getattr(book, m).request())) for m in ("lines", "tallies"))
        return [(reply.value, counted.value) for reply, counted in zip(by_name(lines), by_name(tallies), strict=True)]


class Rows:
    """The same of a database: rows of their own, and one that all calls of a client count in."""

    def __init__(self):
        self.objects = {"book": Database}

    def prepare(self, orb):
        db = orb.object(Database, "book")
        db.execute("CREATE TABLE written (line TEXT PRIMARY KEY)", [])
        db.execute("CREATE TABLE tallies (tag TEXT PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 0))", [])
        db.execute("INSERT INTO written VALUES ('there')", [])
        for tag in ("n1", "n2", "n3"):
            db.execute("INSERT INTO tallies VALUES (?, 0)", [tag])

    def submit(self, orb, tag, number, bad):
        db = orb.object(Database, "book")
        if number // BURST % 2:
            step = -1_000_000 if bad else 1
            return db.execute.submit("UPDATE tallies SET count = count + ? WHERE tag = ?", [step, tag])
        return db.execute.submit("INSERT INTO written VALUES (?)", ["there" if bad else f"{tag}-{number}"])

    def found(self, orb):
        db = orb.object(Database, "book")
        asked = ("SELECT line FROM written WHERE line <> 'there'", "SELECT tag, count FROM tallies")
        lines, tallies = (by_name(orb.crec(orb.mcast(db.query.request(sql, [])))) for sql in asked)
        return [
            (sorted(line for (line,) in reply.value.rows), dict(counted.value.rows))
            for reply, counted in zip(lines, tallies, strict=True)
        ]


def by_name(replies):
    return sorted(replies, key=lambda reply: reply.replica)


class Load:
    """A client at each node with many calls under way, again and again, with fail-over."""

    def __init__(self, c, kind):
        self._c, self._kind = c, kind
        self.written = set()
        self.counted = dict.fromkeys(c.nodes, 0)
        self.raised = self.done = 0
        self.errors = []  # nobody knows of one whether it happened, or what was told is wrong
        self.under_way = dict.fromkeys(c.nodes, 0)
        self._mutex = threading.Lock()
        self._quick = threading.Event()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in c.nodes]

    def _run(self, tag):
        orb, number = self._c.connect(tag, timeout=WAIT), 0
        while not self._over.is_set() and not self.errors:
            sent = []
            for _ in range(BURST):
                sent.append((number, self._kind.submit(orb, tag, number, number % BAD == 0)))
                number += 1
            self.under_way[tag] = BURST
            for which, future in sent:
                self._told(tag, which, future)
                self.under_way[tag] -= 1
            self._quick.wait(PAUSE)

    def _told(self, tag, number, future):
        bad = number % BAD == 0
        try:
            future.result(WAIT)
        except RemoteError as error:
            if not bad:
                self.errors.append((tag, number, error))
        except OboError as error:
            self.errors.append((tag, number, error))
        else:
            if bad:
                self.errors.append((tag, number, "it should have raised"))
        with self._mutex:
            self.done += 1
            self.raised += bad
            if not bad and number // BURST % 2:
                self.counted[tag] += 1
            elif not bad:
                self.written.add(f"{tag}-{number}")

    def more(self, count=300):
        wanted = self.done + count
        self._quick.set()
        until(lambda: self.done >= wanted or self.errors, f"no {count} more calls after {self.done}")
        self._quick.clear()
        assert not self.errors

    def crash(self, *names):
        """In the middle of calls."""
        self._quick.set()
        end = time.monotonic() + WAIT
        while any(self.under_way[n] < BURST // 2 for n in names):
            assert time.monotonic() < end, "nothing is under way"
        for name in names:
            self._c.crash(name)
        self._quick.clear()

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.more()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._quick.set()
        for thread in self._threads:
            thread.join(WAIT)


def convoys(c):
    """By node: how many were performed there in this life."""
    return {name: c.look(name)["replicas"][f"book@{name}"]["convoys"] for name in c.nodes}


def check(c, kind, load):
    assert not load.errors and load.raised
    assert c.settle(WAIT)
    found = kind.found(c.connect(timeout=WAIT))
    (lines, counts), *others = found
    assert others == [(lines, counts)] * 2, "all replicas have the same"
    assert len(lines) == len(set(lines)) and set(lines) == load.written, "each once, and none that has raised"
    assert {tag: counts.get(tag, 0) for tag in c.nodes} == load.counted


KINDS = {"memory": lambda: Lines(Book), "durable": lambda: Lines(Kept), "sqlite": Rows}


@pytest.mark.parametrize("kind", [only_full("memory"), only_full("durable"), only_full("sqlite")])
def test_a_home_and_a_replica_are_killed(tmp_path, kind):
    """Each node is the home of a client, and has a replica. One that comes back takes part in convoys again. What is on
    disk outlives all of them."""
    made = KINDS[kind]()
    with cluster(made.objects, 3, processes=True, trace=tmp_path) as c:
        made.prepare(c.connect(timeout=WAIT))
        with Load(c, made) as load:
            assert (kind == "durable") != all(convoys(c).values())
            for victim in ("n1", "n3"):
                load.crash(victim)
                load.more()
                c.restart(victim)
                load.more()
            if kind != "memory":
                load.crash(*c.nodes)
                restart_all(c, c.nodes)
                load.more()
        check(c, made, load)
        assert (kind == "durable") != all(convoys(c).values())
        c.verify(WAIT)


@pytest.mark.full
def test_many_clients(tmp_path):
    """At all nodes: what conflicts is in one order everywhere."""
    made = Lines(Book)
    with cluster(made.objects, 3, processes=True, trace=tmp_path) as c:
        with Load(c, made) as load:
            load.more(1500)
        check(c, made, load)
        assert all(count > 20 for count in convoys(c).values()), convoys(c)
        verdict = c.verify(WAIT)
        assert verdict.ordered and verdict.delivered > 1500
    done = obo("verify", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no violation found" in done.stdout


def test_one_client_with_many_calls_under_way(tmp_path):
    """Each increment happens once. The calls are far fewer requests."""
    with cluster({"counter": Counter}, 3, processes=True, trace=tmp_path) as c:

        async def run():
            async with c.async_orb("n2", timeout=WAIT) as orb:
                counter = orb.object(Counter, "counter")
                for _ in range(4):
                    await asyncio.gather(*(counter.increment(n) for n in range(256)))
                return await counter.show()

        assert asyncio.run(run()) == 4 * sum(range(256))
        assert c.settle(WAIT)
        orb = c.connect(timeout=WAIT)
        shown = orb.crec(orb.mcast(orb.object(Counter, "counter").show.request()))
        assert {reply.value for reply in shown} == {4 * sum(range(256))}
        for name in c.nodes:
            told = c.look(name)["replicas"][f"counter@{name}"]
            assert told["convoys"] >= 4 and told["begun"] < 600, told
        c.verify(WAIT)
