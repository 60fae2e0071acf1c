"""Statements that travel together: each has its own outcome, whatever becomes of the others."""

import asyncio

import pytest

from framework import BadRequest, Broken, Outdated, RemoteError, Unavailable
from objects.sql.result import Result
from objects.sql.several import LARGE, MOST, Each, Gatherer, each, may_share

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE)"
INSERT = "INSERT INTO t VALUES (?, ?)"


# at a replica


@pytest.fixture
def table(db):
    db.do(TABLE)
    return db


def test_one_that_fails_takes_back_itself_alone(table):
    statements = [
        (INSERT, [1, "a"]),
        (INSERT, [1, "b"]),
        (INSERT, [2, "a"]),
        ("INSERT INTO nowhere VALUES (1)", []),
        (INSERT, [3, "c"]),
    ]
    (found,) = table.batch(("several", statements))
    assert [one.error for one in found] == ["", "IntegrityError", "IntegrityError", "ProgrammingError", ""]
    assert [one.result.rowcount for one in found if one.result] == [1, 1]
    assert table.ask("SELECT * FROM t ORDER BY id") == [(1, "a"), (3, "c")]


def test_what_was_refused_alone_is_refused_among_others(table):
    (found,) = table.batch(("several", [(INSERT, [1, "a"]), ("DROP TABLE t", []), (INSERT, [2])]))
    (alone,) = table.batch(("execute", INSERT, [2]))
    assert [one.error for one in found] == ["", "BadRequest", type(alone).__name__]
    assert found[2].text == str(alone)
    assert table.ask("SELECT id FROM t") == [(1,)]


def test_nothing_is_performed_on_a_footprint_that_is_not_right_any_more(table):
    stands = table.database.touched("several", ([(INSERT, [1, "a"])],)).basis
    table.do("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    table.database.begin()
    assert isinstance(table.call("several", [(INSERT, [1, "a"])], basis=stands), Outdated)
    assert isinstance(table.call("queries", [("SELECT 1", [])], basis=stands), Outdated)
    table.database.commit([])
    assert table.ask("SELECT * FROM t") == []


def test_they_touch_what_each_of_them_touches(table):
    touched = table.database.touched
    one, two = (touched("execute", (INSERT, [n, f"v{n}"])).keys for n in (1, 2))
    both = touched("several", ([(INSERT, [1, "v1"]), (INSERT, [2, "v2"])],)).keys
    assert dict(both) == {**dict(one), **dict(two)}
    read = "SELECT v FROM t WHERE id = ?"
    assert dict(touched("queries", ([(read, [1]), (read, [2])],)).keys) == {
        **dict(touched("query", (read, [1])).keys),
        **dict(touched("query", (read, [2])).keys),
    }


def test_as_many_as_may_go_together_touch_rows(table):
    """Else they would wait for everything in the table."""
    keys = dict(table.database.touched("several", ([(INSERT, [n, None]) for n in range(MOST)],)).keys)
    assert keys["t"] == "iw"


def test_reads_that_go_together(table):
    table.do(INSERT, [1, "a"])
    found = table.call(
        "queries", [("SELECT v FROM t WHERE id = ?", [1]), ("SELECT x FROM t", []), ("DELETE FROM t", [])]
    )
    assert [one.error for one in found] == ["", "ProgrammingError", "BadRequest"]
    assert found[0].result.rows == [("a",)]


@pytest.mark.parametrize("fault", [Broken("the disk is full"), Outdated("another schema")])
def test_what_is_not_the_fault_of_a_statement_ends_the_call(fault):
    def perform(sql, params):
        raise fault

    with pytest.raises(type(fault)):
        each([("x", ())], perform)


def test_any_other_fault_ends_only_its_statement():
    """The call has not taken back those before it."""

    def perform(sql, params):
        if sql == "bad":
            raise TypeError("a mistake of ours")
        return Result([], [], 1)

    assert [one.error for one in each([("good", ()), ("bad", ()), ("good", ())], perform)] == ["", "TypeError", ""]


# at a client


class Node:
    """Takes calls, and answers when it is told to."""

    def __init__(self):
        self.calls = []
        self.refuses = ()  # texts

    def alone(self, sql, params):
        return self._call([(sql, params)], lambda: _said(sql, params))

    def together(self, statements):
        if len(statements) == 1:
            raise AssertionError("one goes alone")
        return self._call(statements, lambda: [_each(sql, params) for sql, params in statements])

    def _call(self, statements, answer):
        future = asyncio.get_running_loop().create_future()
        self.calls.append((list(statements), future, answer))
        if any(sql in self.refuses for sql, _ in statements):
            raise BadRequest("not this")
        return future

    def answer(self, error=None):
        for _, future, answer in self.calls:
            if not future.done():
                future.set_exception(error) if error is not None else future.set_result(answer())

    @property
    def sizes(self):
        return [len(statements) for statements, _, _ in self.calls]


def _said(sql, params):
    return Result([sql], [tuple(params)], 1)


def _each(sql, params):
    return Each(None, "IntegrityError", "twice") if sql == "insert bad" else Each(_said(sql, params))


def gathered(work):
    async def run():
        node = Node()
        await work(node, Gatherer(node.alone, node.together))

    asyncio.run(run())


async def turn():
    for _ in range(3):
        await asyncio.sleep(0)


def test_one_alone_goes_as_it_is():
    async def work(node, gatherer):
        future = gatherer.add("update", (1,))
        await turn()
        assert node.sizes == [1]
        node.answer()
        assert (await future).rows == [(1,)]

    gathered(work)


def test_those_of_one_turn_go_together_and_each_hears_of_its_own():
    async def work(node, gatherer):
        futures = [gatherer.add("insert bad" if n == 2 else "insert", (n,)) for n in range(4)]
        await turn()
        assert node.sizes == [4]
        node.answer()
        found = await asyncio.gather(*futures, return_exceptions=True)
        assert [r.rows for r in found if isinstance(r, Result)] == [[(0,)], [(1,)], [(3,)]]
        assert isinstance(found[2], RemoteError) and str(found[2]) == "IntegrityError: twice"

    gathered(work)


def test_not_too_many_go_together():
    async def work(node, gatherer):
        futures = [gatherer.add("insert", (n,)) for n in range(2 * MOST + 1)]
        await asyncio.sleep(0.05)
        assert sorted(node.sizes) == [1, MOST, MOST]
        node.answer()
        assert [r.rows for r in await asyncio.gather(*futures)] == [[(n,)] for n in range(2 * MOST + 1)]

    gathered(work)


def test_if_one_is_refused_the_others_go_without_it():
    """Refused: before anything was performed. So nothing happens twice."""

    async def work(node, gatherer):
        node.refuses = ("attach",)
        futures = [gatherer.add(sql, ()) for sql in ("insert", "attach", "update")]
        await turn()
        assert node.sizes == [3, 1, 1, 1]
        node.answer()
        found = await asyncio.gather(*futures, return_exceptions=True)
        assert [type(one) for one in found] == [Result, BadRequest, Result]

    gathered(work)


@pytest.mark.parametrize("error", [Unavailable("nobody is there"), RemoteError("what is this?")])
def test_a_call_that_failed_in_another_way_is_not_made_again(error):
    async def work(node, gatherer):
        futures = [gatherer.add("insert", (n,)) for n in range(3)]
        await turn()
        node.answer(error)
        found = await asyncio.gather(*futures, return_exceptions=True)
        assert [(type(one), str(one)) for one in found] == [(type(error), str(error))] * 3
        assert len({id(one) for one in found}) == 3
        await turn()
        assert node.sizes == [3]

    gathered(work)


def test_who_stops_waiting_stops_nobody_else():
    async def work(node, gatherer):
        futures = [gatherer.add("insert", (n,)) for n in range(4)]
        futures[0].cancel()
        await turn()
        assert node.sizes == [3]
        futures[1].cancel()
        node.answer()
        found = await asyncio.gather(*futures, return_exceptions=True)
        assert [type(one) for one in found] == [asyncio.CancelledError] * 2 + [Result] * 2

    gathered(work)


def test_while_many_are_under_way_others_gather_for_a_moment():
    async def work(node, gatherer):
        futures = [gatherer.add("insert", (n,)) for n in range(10)]
        await turn()
        for n in range(3):
            futures.append(gatherer.add("insert", (n,)))
            await turn()
        assert node.sizes == [10]
        await asyncio.sleep(0.05)
        assert node.sizes == [10, 3]
        node.answer()
        await asyncio.gather(*futures)

    gathered(work)


@pytest.mark.parametrize(
    ("sql", "params", "yes"),
    [
        ("INSERT INTO t VALUES (?)", (1,), True),
        ("\n select 1", {"a": 1}, True),
        ("CREATE TABLE t (id)", (), False),
        ("WITH s AS (SELECT 1) DELETE FROM t", (), False),
        ("INSERT INTO t VALUES (?)", ("x" * (LARGE + 1),), False),
        ("INSERT INTO t VALUES (:a)", {"a": b"x" * (LARGE + 1)}, False),
        ("SELECT " + "1 + " * LARGE + "1", (), False),
    ],
)
def test_what_may_go_together(sql, params, yes):
    assert may_share(sql, params) is yes
