"""Three nodes with a database, a client at each of them, and what the replicas say afterwards."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Self

from framework import BadRequest, RemoteError
from framework.testing import cluster
from objects.sql import Database
from tests.cluster.sql.family import Family
from tests.cluster.sql.mixes import Step
from tests.cluster.sql.model import Model, Outcome, PostgresModel, SqliteModel, outcomes
from tests.cluster.sql.watched import Performed, Watched, performed

WAIT = 60.0
NODES = ("n1", "n2", "n3")
DELAYS = (0.002, 0.006, 0.001)  # of the links: what is not ordered arrives in different orders


class Told(NamedTuple):
    """What a client called, and what it was told."""

    method: str
    values: tuple[Any, ...]
    said: list[Outcome]
    performed: bool = True  # False: it only reads, or was refused by the home node


class Client:
    def __init__(self, orb: Any) -> None:
        self.orb = orb
        self.name: str = orb._home.client
        self.db = orb.object(Database, "db")

    def call(self, step: Step) -> Told:
        return self._told(step, lambda: getattr(self.db, step[0])(*step[1]))

    def run(self, steps: list[Step], eager: bool = False) -> list[Told]:
        """One after the other; ``eager``: all are sent at once, in this order."""
        if not eager:
            return [self.call(step) for step in steps]
        sent = [getattr(self.db, method).submit(*values) for method, values in steps]
        return [self._told(step, lambda f=future: f.result(WAIT)) for step, future in zip(steps, sent, strict=True)]

    def _told(self, step: Step, get: Callable[[], Any]) -> Told:
        method, values = step
        try:
            said, ordered = outcomes(method, values, get(), ""), method != "query"
        except RemoteError as error:
            said, ordered = outcomes(method, values, None, str(error).partition(":")[0]), method != "query"
        except BadRequest:
            said, ordered = outcomes(method, values, None, "BadRequest"), False
        return Told(method, values, said, ordered)


class Mixed(NamedTuple):
    """What came of a mix."""

    told: list[list[Told]]  # by client
    orders: list[list[Performed]]  # by replica
    state: list[list[Outcome]]


class Group:
    def __init__(self, directory: Path, options: Mapping[str, Any], model: str = "") -> None:
        self._directory = directory
        self._options = {"db": {"durability": "relaxed", **options}}  # nobody is killed here
        self._model = model
        self._end = ExitStack()

    def __enter__(self) -> Self:
        made = cluster({"db": Watched}, NODES, trace=self._directory, options=self._options, suspect_after=30)
        self.c = self._end.enter_context(made)
        for number, (one, other) in enumerate(combinations(NODES, 2)):
            self.c.slow(one, other, DELAYS[number])
        self.clients = [Client(self.c.connect(node, timeout=WAIT)) for node in NODES]
        self._stores: list[Watched] = [self.c._members[n]._node.life.residents[f"db@{n}"].store for n in NODES]  # type: ignore[attr-defined]
        self._threads = self._end.enter_context(ThreadPoolExecutor(len(NODES)))
        return self

    def __exit__(self, *error: object) -> None:
        self._end.close()

    def on(self, family: Family) -> Family:
        """The same, on this database."""
        return replace(family, dialect="postgres" if self._model else "sqlite")

    def model(self, family: Family) -> Model:
        """With the tables, as they are at the beginning."""
        made = PostgresModel(self._model) if self._model else SqliteModel()
        for sql in (*family.drop(), *family.make()):
            assert made.perform("execute", (sql, ()))[0].error == "", sql
        return made

    def mix(self, family: Family, work: Callable[[], list[list[Told]]]) -> Mixed:
        """Tables are made, ``work`` is done, and tables are gone again. Digests are equal, or it is an error."""
        db = self.clients[0].db
        try:
            db.transaction([(sql, ()) for sql in (*family.drop(), *family.make())])
            self.digests()
            for store in self._stores:
                store.order.clear()
            told = work()
            digests = self.digests()
            orders = [performed(store.order) for store in self._stores]
            state = [self.clients[0].call(("query", (sql, ()))).said for sql in family.state()]
            assert digests[0] == digests[1] == digests[2], digests
            return Mixed(told, orders, state)
        finally:
            db.transaction([(sql, ()) for sql in family.drop()])

    def at_once(self, programs: list[list[Step]], eager: bool) -> list[list[Told]]:
        running = [self._threads.submit(c.run, p, eager) for c, p in zip(self.clients, programs, strict=True)]
        return [each.result(WAIT) for each in running]

    def digests(self) -> list[dict[str, str]]:
        """Of all replicas, at one point of the order: what was called before is performed everywhere then."""
        orb = self.clients[0].orb
        replies = orb.crec(orb.mcast(self.clients[0].db.digest.request()), timeout=WAIT)
        return [reply.value for reply in sorted(replies, key=lambda r: r.replica)]
