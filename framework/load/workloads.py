"""The workloads that have a name. Each says which objects it needs, and draws calls.

What *conflict* means is said by each: the calls of which the setting ``conflict`` gives the share. A call that changes
a replicated object never goes by ucast, since its replicas would differ: for ucast there are objects with one replica
each, and who drives a cluster of his own has to have some.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, ClassVar

from framework.errors import BadRequest
from framework.load.draw import Call, Draw
from framework.load.found import Found
from framework.orb.client import Orb
from framework.testing import sql_work

ENOUGH = 1_000_000_000  # money for all that is withdrawn


class Workload:
    """Made once per client process, with what the cluster has."""

    #: Class of each object on a cluster that is made for the run: on all nodes.
    objects: ClassVar[Mapping[str, str]] = {}
    #: The same, once on each node by itself: for ucast.
    single: ClassVar[Mapping[str, str]] = {}
    options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    fills: ClassVar[bool] = False  # is there a place for a payload?

    def __init__(self, name: str, found: Found) -> None:
        self.name = name
        self.found = found

    def prepare(self, orb: Orb, payload: int) -> None:
        """Before the run, once."""

    def check(self, ways: tuple[float, float, float] | None) -> None:
        """BadRequest if the cluster has not what these shares of ucast, mcast, pcast need."""

    def draw(self, draw: Draw) -> Call:
        raise NotImplementedError


class _OneClass(Workload):
    """All objects are of one class; how many there are, and where, is the cluster's business."""

    cls: ClassVar[str]

    def __init__(self, name: str, found: Found) -> None:
        super().__init__(name, found)
        found.need(self.cls, name)
        self.many = found.together(self.cls) or found.alone(self.cls)
        self.alone = found.alone(self.cls)

    def check(self, ways: tuple[float, float, float] | None) -> None:
        if ways is None:
            return
        ucast, _, pcast = ways
        if ucast and not self.alone:
            raise BadRequest(
                f"{self.name}: ucast is for objects with one replica, and the cluster has none of {self.cls}: what "
                "changes a replicated one by ucast would make its replicas differ"
            )
        if pcast and len(self.many) < 2:
            raise BadRequest(f"{self.name}: pcast needs two objects of {self.cls}; the cluster has {len(self.many)}")

    def draw(self, draw: Draw) -> Call:
        if draw.way == "pcast":
            first, second = draw.chance.sample(self.many, 2)
            one = self.on(first, draw)
            other = self.on(second, draw)
            return Call(one.object, one.method, one.args, one.keys, one.silent, (other,), one.payload, "pcast")
        name = draw.one_of(self.alone if draw.way == "ucast" else self.many)
        return self.on(name, draw)

    def on(self, name: str, draw: Draw) -> Call:
        """A call of this object."""
        raise NotImplementedError


class CounterLoad(_OneClass):
    """P3's counter: increments and decrements; conflicting ones are ``show``."""

    cls = "objects.counter:Counter"
    objects: ClassVar = {"counter": cls, "counter2": cls}
    single: ClassVar = {"counter": cls}

    def on(self, name: str, draw: Draw) -> Call:
        if draw.conflicts or draw.reads:
            return Call(name, "show", way=draw.way)
        method = "increment" if draw.chance.random() < 0.5 else "decrement"
        return Call(name, method, (1,), silent=True, way=draw.way)


class BankLoad(_OneClass):
    """Deposits on accounts by their skew; conflicting ones withdraw from one account that all know."""

    cls = "objects.bank:Bank"
    objects: ClassVar = {"bank": cls, "bank2": cls}
    single: ClassVar = {"bank": cls}

    def prepare(self, orb: Orb, payload: int) -> None:
        for name in {*self.many, *self.alone}:
            orb.object(name).deposit("hot", ENOUGH)

    def on(self, name: str, draw: Draw) -> Call:
        if draw.conflicts:
            return Call(name, "withdraw", ("hot", 1), ("hot",), silent=True, way=draw.way)
        account = draw.key()
        if draw.reads:
            return Call(name, "balance", (account,), (account,), way=draw.way)
        return Call(name, "deposit", (account, 1), (account,), silent=True, way=draw.way)


class FileLoad(_OneClass):
    """P1's file: blocks are written and read; conflicting ones write the same block. With a payload."""

    cls = "objects.file:File"
    objects: ClassVar = {"file": cls, "file2": cls}
    single: ClassVar = {"file": cls}
    fills = True

    def on(self, name: str, draw: Draw) -> Call:
        block = 0 if draw.conflicts else 1 + draw.index()
        if draw.reads and not draw.conflicts:
            return Call(name, "read", (block,), (block,), way=draw.way)
        data = draw.filling.encode()
        return Call(name, "write", (block, data), (block,), silent=True, payload=len(data), way=draw.way)


class TravelLoad(Workload):
    """P0's agency: a car and a room on a day are booked by pcast and given back; conflicting ones ask for the plan."""

    objects: ClassVar = {"car": "objects.travel:Car", "hotel": "objects.travel:Hotel"}

    def __init__(self, name: str, found: Found) -> None:
        super().__init__(name, found)
        self.car = found.need("objects.travel:Car", name)[0]
        self.hotel = found.need("objects.travel:Hotel", name)[0]
        self._booked: dict[str, tuple[str, str]] = {}  # client: the day it has booked and not given back, and the way

    def check(self, ways: tuple[float, float, float] | None) -> None:
        if ways is not None and ways[0]:
            raise BadRequest(f"{self.name}: cars and hotels are booked at all replicas; there is nothing for ucast")

    def draw(self, draw: Draw) -> Call:
        if draw.conflicts:
            return Call(self.hotel, "plan", way="mcast" if draw.way == "pcast" else draw.way)
        if draw.reads:
            day = f"{draw.client}-{draw.key()}"
            name = self.car if draw.chance.random() < 0.5 else self.hotel
            return Call(name, "free", (day,), (day,), way="mcast" if draw.way == "pcast" else draw.way)
        day, way = self._booked.pop(draw.client, ("", ""))
        if day:
            return self._trip("cancel", (day, 1), day, way)  # a day of its own: it had the first place
        day = f"{draw.client}-{draw.number}"
        self._booked[draw.client] = day, draw.way
        return self._trip("book", (day,), day, draw.way)

    def _trip(self, method: str, args: tuple[Any, ...], day: str, way: str) -> Call:
        """By mcast it is the room alone."""
        hotel = Call(self.hotel, method, args, (day,), way="mcast" if way == "mcast" else "")
        return hotel if way == "mcast" else Call(self.car, method, args, (day,), also=(hotel,), way="pcast")


class SqlLoad(Workload):
    """A replicated database: rows are updated and read by their skew; conflicting ones update one row."""

    cls: ClassVar[str] = "objects.sql.database:Database"
    objects: ClassVar = {"db": cls}
    insert_share: ClassVar[float] = 0.0
    fills = True

    def __init__(self, name: str, found: Found) -> None:
        super().__init__(name, found)
        self.db = found.need(self.cls, name)[0]
        self._numbers: Iterator[int] = count(1)

    def check(self, ways: tuple[float, float, float] | None) -> None:
        if ways is not None and (ways[0] or ways[2]):
            raise BadRequest(f"{self.name}: one replicated database: what changes it goes by mcast alone")

    def prepare(self, orb: Orb, payload: int) -> None:
        db = orb.object(self.db)
        for statement in sql_work.MAKE:
            db.execute(statement.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1))
        db.execute("CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, body TEXT NOT NULL)")
        if not db.query("SELECT count(*) FROM things")["rows"][0][0]:
            db.executemany(sql_work.FILL, sql_work.fill(payload))

    def draw(self, draw: Draw) -> Call:
        if draw.conflicts:
            return self._call("execute", sql_work.UPDATE, (sql_work.HOT,), draw)
        row = 1 + draw.index() % sql_work.ROWS
        if draw.reads:
            return self._call("query", sql_work.SELECT, (row,), draw)
        if draw.chance.random() < self.insert_share:
            key = f"{draw.client}-{draw.number}"
            return self._call("execute", "INSERT INTO events VALUES (?, ?)", (key, draw.filling), draw)
        return self._call("execute", sql_work.UPDATE, (row,), draw)

    def _call(self, method: str, statement: str, values: tuple[Any, ...], draw: Draw) -> Call:
        filled = len(draw.filling) if statement.startswith("INSERT") else 0
        return Call(self.db, method, (statement, values), (str(values[0]),), payload=filled, way=draw.way)


class SqlInsertLoad(SqlLoad):
    """As sql, but what is written are new rows, each with a key of its own, with a payload."""

    insert_share = 1.0


class OwnLoad(Workload):
    """A function of the user: ``module:function``."""

    fills = True

    def __init__(self, name: str, found: Found, function: Callable[[Draw], Call]) -> None:
        super().__init__(name, found)
        self._function = function

    def prepare(self, orb: Orb, payload: int) -> None:
        getattr(self._function, "prepare", lambda orb: None)(orb)

    def draw(self, draw: Draw) -> Call:
        found = self._function(draw)
        if not isinstance(found, Call):
            raise BadRequest(f"{self.name} gave {found!r:.80}: return a framework.load.Call")
        return found
