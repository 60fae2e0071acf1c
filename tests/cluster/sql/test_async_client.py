"""``AsyncSql`` on three nodes: coroutines share calls, and none of them notices."""

import asyncio

import pytest

from framework import BadRequest, RemoteError
from framework.testing import cluster
from objects.sql import Database
from objects.sql.async_client import AsyncSql
from objects.sql.client import Sql

WAIT = 60.0
TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)"


def test_many_coroutines_of_one_connection(tmp_path, options):
    async def work(c):
        async with c.async_orb("n1", timeout=WAIT) as orb, c.async_orb("n2", timeout=WAIT) as other:
            db, away = AsyncSql(orb, "db", timeout=WAIT), AsyncSql(other, "db", timeout=WAIT)
            await db.execute(TABLE)
            inserts = [db.execute("INSERT INTO t VALUES (?, ?)", [n // 2, 0]) for n in range(40)]  # each key twice
            found = await asyncio.gather(*inserts, return_exceptions=True)
            assert [type(one) is RemoteError for one in found].count(True) == 20
            assert all("IntegrityError" in str(one) for one in found if isinstance(one, Exception))
            adds = [each.execute("UPDATE t SET n = n + 1 WHERE id = :id", {"id": 3}) for each in (db, away) * 30]
            wrong = asyncio.ensure_future(db.execute("SELECT 1 LIMIT nothing"))
            await asyncio.gather(*adds)
            with pytest.raises((RemoteError, BadRequest)):
                await wrong
            read = "SELECT n FROM t WHERE id = ?"
            for level in ("session", "linearizable", "majority", "any"):
                values = await asyncio.gather(*[db.query(read, [n % 20], read=level) for n in range(30)])
                assert level == "any" or [r.scalar() for r in values] == [60 if n % 20 == 3 else 0 for n in range(30)]
            with pytest.raises(RemoteError, match="BadRequest: query only reads"):
                await asyncio.gather(db.query("DELETE FROM t WHERE id = 1"), db.query(read, [1]))
            async with orb.transaction():
                await db.execute("UPDATE t SET n = 7 WHERE id = 5")
                assert (await db.query(read, [5])).scalar() == 7
            assert (await db.transaction([("UPDATE t SET n = 8 WHERE id = ?", [6]), (read, [6])]))[1].scalar() == 8
            assert (await db.executemany("UPDATE t SET n = 9 WHERE id = ?", [[7], [8]])).rowcount == 2

    with cluster({"db": Database}, 3, trace=tmp_path, options=options) as c:
        asyncio.run(work(c))
        assert Sql(c.connect("n3", timeout=WAIT), "db", timeout=WAIT).digests().equal
        c.verify(WAIT)


def test_its_home_is_killed_and_everything_happens_once(tmp_path):
    """Calls that nobody has answered are repeated at another node: none of their statements is performed twice."""

    async def work(c):
        async with c.async_orb("n1", timeout=WAIT) as orb:
            db = AsyncSql(orb, "db", timeout=WAIT)
            await db.execute(TABLE)
            for n in range(10):
                await db.execute("INSERT INTO t VALUES (?, 0)", [n])

            async def add(n):
                for _ in range(30):
                    await db.execute("UPDATE t SET n = n + 1 WHERE id = ?", [n % 10])

            adding = [asyncio.ensure_future(add(n)) for n in range(20)]
            await asyncio.sleep(0.1)
            await asyncio.to_thread(c.crash, "n1")
            await asyncio.gather(*adding)
            found = await db.query("SELECT n FROM t ORDER BY id", read="linearizable")
            assert found.rows == [(60,)] * 10

    with cluster({"db": Database}, 3, processes=True, trace=tmp_path) as c:
        asyncio.run(work(c))
