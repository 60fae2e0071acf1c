"""``AsyncSql``: ``Sql`` for coroutines.

    async with AsyncOrb("localhost:7401,localhost:7402,localhost:7403") as orb:
        db = AsyncSql(orb, "db")
        await db.execute("INSERT INTO t VALUES (?, ?)", [1, "one"])
        (await db.query("SELECT * FROM t")).rows

Statements that coroutines of one ``AsyncSql`` ask for at the same time travel together (several.py): each has its own
outcome, and many cost little more than one. So a program has one of these for all of its coroutines.
"""

from collections.abc import Sequence
from typing import Any

from framework import AsyncOrb, NoSuchObject
from objects.sql.client import Level, Values, answers_of, check_level, checked_params, diverged, is_equal, rows_alike
from objects.sql.database import Database
from objects.sql.result import Result
from objects.sql.several import Gatherer, may_share


class AsyncSql:
    """``name`` is the object; ``read`` the level of reads that do not say otherwise. Belongs to the loop of ``orb``."""

    def __init__(self, orb: AsyncOrb, name: str, read: Level = "session", timeout: float | None = None) -> None:
        self.orb = orb
        self.name = name
        self.read = check_level(read)
        self._timeout = timeout
        db: Any = orb.object(Database, name)
        self._db = db
        self._execute = db.execute.with_(timeout=timeout)
        self._writes = Gatherer(self._execute.submit, db.several.with_(timeout=timeout).submit)
        self._reads: dict[Level, Gatherer] = {}
        self._replicas: tuple[str, ...] = ()

    async def replicas(self) -> tuple[str, ...]:
        """Those that are declared, whether they are there or not."""
        if not self._replicas:
            about = next((o for o in await self.orb.look("objects") if o["name"] == self.name), None)
            if about is None:
                raise NoSuchObject(f"no object {self.name!r}")
            self._replicas = tuple(about["replicas"])
        return self._replicas

    async def execute(self, sql: str, params: Values = ()) -> Result:
        """One statement of any kind. Who stops waiting for it does not stop it, if it has left with others."""
        values = checked_params(params)
        if self.orb.in_transaction or not may_share(sql, values):
            found: Result = await self._execute(sql, values)
            return found
        return await self._writes.add(sql, values)

    async def executemany(self, sql: str, rows: Sequence[Values]) -> Result:
        """One statement for many rows, all or none."""
        found: Result = await self._db.executemany.with_(timeout=self._timeout)(sql, [checked_params(r) for r in rows])
        return found

    async def transaction(self, statements: Sequence[tuple[str, Values]]) -> list[Result]:
        """All of them or none."""
        parts = [(sql, checked_params(values)) for sql, values in statements]
        found: list[Result] = await self._db.transaction.with_(timeout=self._timeout)(parts)
        return found

    async def query(self, sql: str, params: Values = (), read: Level | None = None) -> Result:
        """One statement that changes nothing."""
        values = checked_params(params)
        level = self.read if read is None else check_level(read)
        if level == "majority":
            return await self._compared(sql, values)
        if self.orb.in_transaction:
            found: Result = await self._db.query.with_(timeout=self._timeout)(sql, values)
            return found
        reads = self._reads.get(level) or await self._reader(level)
        return await (reads.add(sql, values) if may_share(sql, values) else reads.alone(sql, values))

    async def _reader(self, level: Level) -> Gatherer:
        options: dict[str, Any] = {"timeout": self._timeout}
        if level == "any":
            options["stale"] = True
        elif level == "linearizable":  # to all replicas, as a write goes
            options["to"] = await self.replicas()
        one, many = self._db.query.with_(**options), self._db.queries.with_(**options)
        made = self._reads[level] = Gatherer(one.submit, many.submit)
        return made

    async def _compared(self, sql: str, values: Any) -> Result:
        request = self._db.query.request(sql, values)
        needed = len(await self.replicas()) // 2 + 1
        replies = await self.orb.quorum(await self.orb.mcast(request), needed, self._timeout)
        if is_equal(answers_of(replies, rows_alike)):
            found: Result = replies[-1].value
            return found
        everybody = await self.orb.crec(await self.orb.mcast(request), self._timeout)
        raise diverged(self.name, replies, everybody, rows_alike)
