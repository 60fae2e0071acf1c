"""``obo soak --sql --random``: concurrent random statements on a replicated database, while replicas are killed.

The statements are of the grammar that the campaign of footprints uses (framework.testing.sql_grammar). The question is
asked of the whole: do all replicas have the same state, whatever clients do at once? Every minute there is a new
schema, which changes under load. Digests of all tables are compared at intervals, at one point of the order, and in
the end.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any, Final

from framework.bench.soak_clients import Runner
from framework.bench.soak_group import Plan, grave
from framework.bench.soak_sql import SqlReport, SqlSoak
from framework.errors import BadRequest, OboError, RemoteError
from framework.orb.client import Orb
from framework.testing.clusters import Cluster
from framework.testing.postgres import Server
from framework.testing.sql_grammar import Dialect, Grammar
from objects.sql import Database

EVERY: Final = 15.0  # seconds between two comparisons
LASTS: Final = 60.0  # seconds that a schema lasts
TRIM: Final = 0.08  # of the statements keep tables small


class RandomReport(SqlReport):
    """``rows``: statements by their first word that were performed. ``refused``: those that had an error."""

    schemas: int = 0
    compared: int = 0

    @property
    def story(self) -> str:
        done = ", ".join(f"{word} {count}" for word, count in sorted(self.rows.items()))
        return (
            f"{self.database}; {self.schemas} schemas; performed: {done}; {self.refused} statements with an error; "
            f"digests compared {self.compared} times"
        )

    @property
    def praise(self) -> str:
        return f"digests of all tables were equal at {self.nodes} replicas, each time"


class Shared:
    """The grammar of the schema that is there now."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect: Dialect = dialect
        self.number = 0
        self.grammar: Grammar | None = None


class RandomClient(Runner):
    def __init__(self, name: str, orb: Orb, seed: str, shared: Shared) -> None:
        super().__init__(name, orb, seed, 0.0)
        self.done: Counter[str] = Counter()
        self.refused = 0
        self._db = orb.object(Database, "db")
        self._shared = shared
        self._grammar: Grammar | None = None
        self._number = -1

    def _one(self) -> None:
        sql, params = self._next()
        start, home = time.monotonic(), self._orb.home
        word = sql.split(None, 1)[0].lower()
        try:
            self._db.execute(sql, params)
        except (RemoteError, BadRequest):
            self.refused += 1
            return
        except OboError as error:
            self._failed(f"{sql} with {params}", start, home, error)
            return
        finally:
            self.longest = max(self.longest, time.monotonic() - start)
        self.calls += 1
        self.done[word] += 1

    def _next(self) -> tuple[str, list[Any]]:
        if self._number != self._shared.number or self._grammar is None:
            self._number = self._shared.number
            assert self._shared.grammar is not None
            self._grammar = self._shared.grammar.fork(self._random)
        return self._grammar.trim() if self._random.random() < TRIM else self._grammar.call()


class RandomSoak(SqlSoak):
    clients: list[RandomClient]  # type: ignore[assignment]  # they are asked for other things

    def __init__(self, plan: Plan, c: Cluster, started: dict[str, Server]) -> None:
        super().__init__(plan, c, started)
        self.compared = 0
        self._shared = Shared("postgres" if started else "sqlite")
        self._watcher = threading.Thread(target=self._watch, name="watcher", daemon=True)

    def _prepare(self) -> None:
        self._renew()
        for i in range(self.plan.clients):
            name = f"client{i + 1}"
            orb = self._c.connect(self._c.nodes[i % len(self._c.nodes)], timeout=self.plan.call)
            self.clients.append(RandomClient(name, orb, f"{self.plan.seed} {name}", self._shared))
        self._watcher.start()

    def _renew(self) -> None:
        """Another schema in the place of the last one, while clients go on. A statement that fails is left out."""
        shared = self._shared
        made = Grammar(Random(f"{self.plan.seed} {shared.number}"), shared.dialect, texts=0, images=1)
        made.bounded = True
        db = self._c.connect(timeout=self.plan.call).object(Database, "db")
        old = () if shared.grammar is None else shared.grammar.removal()
        for sql, params in [*((text, []) for text in (*old, *made.schema)), *made.rows]:
            with suppress(RemoteError, BadRequest):
                db.execute(sql, params)
        shared.grammar = made
        shared.number += 1

    def _watch(self) -> None:
        """Compare at intervals, until it is over."""
        renewed = time.monotonic()
        while not self._over.wait(EVERY):
            try:
                self._compare()
                if time.monotonic() > renewed + LASTS:
                    self._renew()
                    renewed = time.monotonic()
            except OboError as error:
                self.problems.append(f"after {self.elapsed:.0f} s: {type(error).__name__}: {error}")

    def _compare(self) -> None:
        """At one point of the order, of the replicas that are there."""
        orb = self._c.connect(timeout=self.plan.call)
        replies = orb.crec(orb.mcast(orb.object(Database, "db").digest.request()))
        found = {reply.replica: reply.value for reply in replies}
        self.compared += len(found) > 1
        if len({tuple(sorted(each.items())) for each in found.values()}) > 1:
            self.problems.append(f"after {self.elapsed:.0f} s the states of the replicas differ: {found}")

    def _damaged(self) -> Iterator[str]:
        """What a statement has damaged at all replicas alike shows in no digest of rows."""
        for at, found in self._everywhere("query", "PRAGMA integrity_check").items():
            lines = [text for (text,) in found.rows if " index " in text or "malformed" in text]
            if lines:
                yield f"{at}: the file is damaged: {'; '.join(lines[:3])}"

    def report(self) -> RandomReport:
        self._watcher.join(4 * self.plan.call)
        said = RandomReport(
            self.plan.seed,
            self.plan.nodes,
            self.plan.clients,
            round(self.elapsed, 1),
            self._shared.dialect,
            self.faults,
        )
        said.calls, said.refused = self.calls, sum(client.refused for client in self.clients)
        said.longest_s = round(max(client.longest for client in self.clients), 3)
        said.rows = dict(sum((client.done for client in self.clients), Counter()))
        said.schemas, said.problems = self._shared.number, [*self.errors, *self.problems]
        if not self.problems:
            try:
                said.digests = self._everywhere("digest")
                if len({tuple(sorted(each.items())) for each in said.digests.values()}) > 1:
                    said.problems.append(f"the states of the replicas differ: {said.digests}")
                self.compared += 1
                if not self._servers:
                    said.problems += self._damaged()
            except OboError as error:
                said.problems.append(f"the last look: {type(error).__name__}: {error}")
        said.compared = self.compared
        errors = grave(self._c.directory, self._c.nodes)
        said.problems += [e for e in errors if not (self._servers and "cannot go on" in e)]
        return said
