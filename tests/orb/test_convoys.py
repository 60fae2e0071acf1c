"""Calls that leave their home node together (framework/orb/convoys.py): each as if it had come alone, and sooner."""

import asyncio
import re
import threading
from contextlib import asynccontextmanager
from types import SimpleNamespace

import grpc
import grpc.aio
import msgspec
import pytest

from framework import ALL, DeadlineExceeded, Object, RemoteError, Unavailable, conflict_matrix, method
from framework.com.convoy import args_of, calls_of
from framework.declare import declaration
from framework.declare.environment import current
from framework.net.wire.orb_pb2 import Packet
from framework.net.wire.orb_pb2_grpc import SessionStub
from framework.orb import turn
from framework.orb.messages import Act, Answer, Ask, Bye, Call, Hello, encode, to_client
from framework.orb.node import Node
from framework.orb.riding import Riding
from framework.orb.short import LONG
from framework.orb.turn import LONGEST, Turn
from objects.counter import Counter
from tests.orb.cluster import cluster

WAIT = 60.0
OBJECTS = """
[objects.counter]
class = "objects.counter:Counter"
[objects.box]
class = "tests.orb.test_convoys:Box"
[objects.pair]
class = "objects.counter:Counter"
on = ["n1", "n2"]
[objects.far]
class = "objects.counter:Counter"
on = ["n2", "n3"]
"""


class Asks:
    """Its length is told by another object."""

    def __len__(self) -> int:
        found: int = current("orb").orb.object("counter").show()
        return found


@conflict_matrix(put=("put", "get", "asks"), write=("write", "note", "lines"), note=("lines",), asks=("asks", "get"))
class Box(Object):
    """``put`` conflicts where the names are the same, ``write`` always, ``asks`` looks short and is not."""

    teller = Asks()

    def __init__(self) -> None:
        self.things: dict[str, list[int]] = {}
        self.written: list[str] = []

    @method(key="name")
    def put(self, name: str, value: int) -> int:
        self.things[name] = [*self.things.get(name, []), value]
        if value < 0:
            raise ValueError(f"{value} is less than nothing")
        return len(self.things[name])

    @method
    def write(self, line: str) -> int:
        self.written.append(line)
        return len(self.written)

    @method
    def note(self, line: str) -> None:
        self.written.append(line)

    @method(key="name")
    def asks(self, name: str) -> int:
        self.things[name] = [*self.things.get(name, []), len(self.teller)]
        return self.things[name][-1]

    @method(key="name", readonly=True)
    def get(self, name: str) -> list[int]:
        return self.things.get(name, [])

    @method(readonly=True)
    def lines(self) -> list[str]:
        return self.written


@asynccontextmanager
async def work(ports, trace, judged=True):
    async with asyncio.timeout(WAIT), cluster(ports(3), trace, judged, OBJECTS) as c:
        yield c


def residents(c, name):
    return [r for n in c.nodes.values() if n.member for at, r in n.life.residents.items() if at.startswith(f"{name}@")]


def convoys(c, name):
    """At all replicas of an object, all calls of a test are performed: how many requests with several of them were
    there? The same at each of them."""
    (count,) = {r.convoys for r in residents(c, name)}
    return count


async def until(happened):
    while not happened():
        await asyncio.sleep(0.005)


async def performed(c, name, calls):
    await until(lambda: all(r.changes == calls for r in residents(c, name)))


@pytest.fixture
def gather(monkeypatch):
    """Calls of all clients of a node gather, for some milliseconds, whatever decides on that otherwise."""

    def go(self):
        if self.member is not None:
            asyncio.get_running_loop().call_later(0.01, leave, self)
            self.member.stage.go()

    def leave(self):
        self.sessions.leave_first()
        if self.member is not None:
            self.member.stage.go()

    monkeypatch.setattr(Node, "go", go)


@pytest.fixture
def hold(monkeypatch):
    """Nothing leaves by itself."""

    def go(self):
        if self.member is not None:
            self.member.stage.go()

    monkeypatch.setattr(Node, "go", go)


@pytest.fixture
def stuck(monkeypatch):
    """Convoys are not performed before somebody says so."""
    waiting = []
    start = Riding.start
    monkeypatch.setattr(Riding, "start", lambda self: waiting.append(self))

    def release():
        monkeypatch.setattr(Riding, "start", start)
        for one in waiting:
            one.start()

    return release


def test_one_client_with_many_calls_under_way(ports, tmp_path):
    """Compatible ones: the sum is right, and each has happened once."""

    async def run():
        async with work(ports, tmp_path) as c, c.client("n1") as orb:
            counter = orb.object(Counter, "counter")
            for _ in range(4):
                await asyncio.gather(*(counter.increment.submit(n) for n in range(256)))
            assert await counter.show() == 4 * sum(range(256))
            await performed(c, "counter", 1024)
            assert 4 <= convoys(c, "counter") <= 200, "most of them have travelled together"
            assert {r.object.value for r in residents(c, "counter")} == {4 * sum(range(256))}
            (history,) = {r.history for r in residents(c, "counter")}
            assert history, "it is known which calls these were"

    asyncio.run(run())


def test_the_calls_of_a_client_stay_in_their_order(ports, tmp_path):
    """Each gets its own answer; whatever else the client sends between them does not pass them."""

    async def run():
        async with work(ports, tmp_path) as c, c.client("n1") as orb:
            box, far = orb.object(Box, "box"), orb.object(Counter, "far")
            lines = [str(n) for n in range(200)]
            assert await asyncio.gather(*(box.write.submit(line) for line in lines)) == list(range(1, 201))
            assert convoys(c, "box") >= 3
            await asyncio.gather(*((box.note if n % 3 else box.write).submit(str(n)) for n in range(200, 230)))
            lines += [str(n) for n in range(200, 230)]
            writes = [box.write.submit("a") for _ in range(20)]
            seen = box.lines.submit()
            writes += [box.write.submit("b") for _ in range(20)]
            await box.note.oneway("c")
            writes += [box.write.submit("d") for _ in range(20)]
            far_off = [far.increment.submit(1) for _ in range(5)]
            writes.append(box.write.with_(receipt=ALL).submit("e"))
            seen_late = box.lines.submit()
            await asyncio.gather(*writes, *far_off)
            assert await seen == [*lines, *"a" * 20]
            assert await seen_late == [*lines, *"a" * 20, *"b" * 20, "c", *"d" * 20, "e"]
            for each in residents(c, "box"):
                assert each.object.written == await seen_late

    asyncio.run(run())


@pytest.mark.parametrize("shared", [False, True])
def test_many_clients_and_some_calls_that_raise(ports, tmp_path, shared, request):
    """Of two nodes, with compatible and conflicting calls in the same convoy. Those that raise leave no trace, neither
    in the state nor among what would be sent again."""
    if shared:
        request.getfixturevalue("gather")

    async def client(c, number):
        said = []
        async with c.client("n1" if number % 2 else "n2") as orb:
            box, mine = orb.object(Box, "box"), f"mine{number}"
            for turn in range(10):
                puts = [(mine, turn), ("hot", number), ("hot", -number - 1), (mine, -turn - 1)]
                some = [puts[(turn + number) % 4]] if shared else puts
                said += await asyncio.gather(*(box.put.submit(*put) for put in some), return_exceptions=True)
        return said

    async def run():
        async with work(ports, tmp_path) as c:
            said = await asyncio.gather(*(client(c, n) for n in range(8)))
            answers = [answer for each in said for answer in each]
            raised = [r for r in answers if isinstance(r, BaseException)]
            assert all(isinstance(r, RemoteError) and "less than nothing" in str(r) for r in raised)
            good = len(answers) - len(raised)
            assert raised and good
            await performed(c, "box", good)
            assert convoys(c, "box") > 0
            first, *others = (r.object.things for r in residents(c, "box"))
            assert all(other == first for other in others)
            assert sum(map(len, first.values())) == good
            assert all(value >= 0 for values in first.values() for value in values)
            for n in range(8):
                mine = first.get(f"mine{n}", [])
                assert mine == sorted(mine) and len(set(mine)) == len(mine)
            for each in residents(c, "box"):
                again = [i for r in each.recent.requests() for _, i in calls_of(r)]
                assert len(again) == len(set(again)) == good, "what has raised is not sent again"

    asyncio.run(run())


def test_calls_of_several_clients_are_one_request(ports, tmp_path, hold):
    async def run():
        async with work(ports, tmp_path) as c:
            clients = [c.client("n1") for _ in range(10)]
            boxes = [(await client.__aenter__()).object(Box, "box") for client in clients]
            begun = c.nodes["n2"].life.com.hosts["box@n2"].order.begun
            waiting = c.nodes["n1"].life.convoys
            calls = asyncio.gather(*(box.put(f"k{n % 3}", n) for n, box in enumerate(boxes)))
            await until(lambda: len(waiting.clients) == len(boxes))
            waiting.flush()
            found = await calls
            assert sorted(found) == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4]
            await performed(c, "box", 10)
            assert convoys(c, "box") == 1
            assert c.nodes["n2"].life.com.hosts["box@n2"].order.begun == begun + 1
            for client in clients:
                await client.__aexit__(None, None, None)

    asyncio.run(run())


def test_each_leaves_alone_if_nobody_may_wait(ports, tmp_path):
    """[serve] gather = 0."""

    async def run():
        async with work(ports, tmp_path) as c, c.client("n1") as orb:
            box = orb.object(Box, "box")
            c.nodes["n1"].life.convoys._gather = 0.0
            assert await asyncio.gather(*(box.put.submit("a", n) for n in range(6))) == [1, 2, 3, 4, 5, 6]
            await performed(c, "box", 6)
            assert convoys(c, "box") == 0

    asyncio.run(run())


def test_a_method_that_calls_others_after_all(ports, tmp_path):
    """Nobody could know. It is taken back, and performed again, alone, once."""

    async def run():
        async with work(ports, tmp_path) as c, c.client("n1") as orb:
            box = orb.object(Box, "box")
            await orb.object(Counter, "counter").increment(7)
            assert await asyncio.gather(*(box.asks.submit(f"k{n % 2}") for n in range(20))) == [7] * 20
            await performed(c, "box", 20)
            assert convoys(c, "box") > 0
            for each in residents(c, "box"):
                assert each.object.things == {"k0": [7] * 10, "k1": [7] * 10}
            known = convoys(c, "box")
            assert await asyncio.gather(*(box.asks.submit("k0") for n in range(5))) == [7] * 5
            await performed(c, "box", 25)
            assert convoys(c, "box") == known, "now it is known"

    asyncio.run(run())


def performing(told, call):
    """At which replicas, says the message of a deadline; those that have begun at another moment are told apart."""
    found = re.findall(rf"{call} at ([^;]*?) is being performed", told)
    return {at for some in found for at in some.split(", ")}


def test_late_calls_say_where_they_are(ports, tmp_path, stuck):
    async def run():
        async with work(ports, tmp_path) as c, c.client("n1") as orb:
            box = orb.object(Box, "box")
            everywhere = {"box@n1", "box@n2", "box@n3"}
            late = [box.put.with_(timeout=1.0).submit(f"k{n}", n) for n in range(3)]
            patient = [box.put.submit(f"k{n}", n) for n in range(3, 5)]
            told = await orb.look("status")
            while len(told["running"]) < 1:
                await asyncio.sleep(0.01)
                told = await orb.look("status")
            client = next(iter(told["clients"]))
            assert told["running"] == [{"replica": "box@n1", "call": f"{client}/1 and 4 more"}]
            assert [call["number"] for call in told["calls"]] == [1, 2, 3, 4, 5]
            for number, each in enumerate(late, 1):
                with pytest.raises(DeadlineExceeded, match="answered: nobody") as caught:
                    await each
                assert performing(str(caught.value), f"box.put of {client}/{number}") == everywhere
            behind = box.put.with_(timeout=1.0).submit("k1", 0)
            calls = f"box.put of {client}/1 and 4 more"
            with pytest.raises(DeadlineExceeded, match=f"waits for its predecessor {calls}; ") as caught:
                await behind
            assert performing(str(caught.value), calls) == everywhere
            stuck()
            assert await asyncio.gather(*patient) == [1, 1]
            assert await box.get("k0") == [0], "it has happened nevertheless"
            await performed(c, "box", 6)

    asyncio.run(run())


def test_a_call_that_is_cancelled_is_carried_through(ports, tmp_path, stuck, hold):
    """Also if it has not left: replicas must all do the same. Its neighbours get their answers."""

    async def run():
        async with work(ports, tmp_path) as c, c.client("n1") as orb:
            box, waiting = orb.object(Box, "box"), c.nodes["n1"].life.convoys
            calls = [box.put.submit("a", n) for n in range(6)]
            await until(lambda: waiting.clients)
            calls[2].cancel()
            await until(lambda: not waiting.clients)  # whatever else a client says comes after its calls
            stuck()
            said = await asyncio.gather(*calls, return_exceptions=True)
            assert isinstance(said.pop(2), asyncio.CancelledError)
            assert said == [1, 2, 4, 5, 6]
            assert not c.nodes["n1"].sessions.total.count
            assert await box.get("a") == list(range(6))

    asyncio.run(run())


@pytest.mark.parametrize("how", ["it goes", "its stream ends", "its node drains"])
def test_calls_that_wait_leave_when_something_happens_to_their_client(ports, tmp_path, hold, how):
    """One that says nothing else and does not come back."""

    async def run():
        async with work(ports, tmp_path) as c, grpc.aio.insecure_channel(c.config.address("n1")) as channel:
            node, stream = c.nodes["n1"], SessionStub(channel).Open()
            asked = [Ask("box", "put", msgspec.msgpack.encode(("a", n))) for n in range(6)]
            calls = [Call(n, Act("sync", (ask,), timeout=WAIT), 0.0, None, 1) for n, ask in enumerate(asked, 1)]
            await stream.write(Packet(messages=[encode(Hello("c-1")), *map(encode, calls)]))
            await until(lambda: node.life.convoys.clients)
            if how == "it goes":
                await stream.write(Packet(messages=[encode(Bye())]))
            elif how == "its stream ends":
                stream.cancel()
            else:
                await node.drain()
                said = [to_client(m) for m in (await stream.read()).messages]
                while len([m for m in said if isinstance(m, Answer)]) < 6:
                    said += [to_client(m) for m in (await stream.read()).messages]
            await performed(c, "box", 6)
            assert convoys(c, "box") == 1
            await until(lambda: not node.sessions.total.count)  # replicas have performed it, their word is on its way
            assert ("c-1" in node.life.com.calls.sessions) == (how != "it goes")

    asyncio.run(run())


def test_what_has_not_left_has_not_happened(ports, tmp_path):
    """Too few replicas are there: calls are refused as if they had come alone."""

    async def run():
        async with work(ports, tmp_path, judged=False) as c, c.client("n1", timeout=20) as orb:
            pair = orb.object(Counter, "pair")
            await pair.increment(1)
            await c.nodes["n2"].stop()
            await until(lambda: c.nodes["n1"].life.com.view == 2)
            calls = [pair.increment.with_(timeout=0.5).submit(1) for _ in range(5)]
            for each in calls:
                with pytest.raises(Unavailable):
                    await each
            assert c.nodes["n1"].object("pair@n1").value == 1
            c.nodes.pop("n2")

    asyncio.run(run())


def test_what_an_earlier_life_has_performed_is_sent_again_call_by_call(ports, tmp_path):
    """Some of a convoy may be in the state that the node has got from another one, as other copies."""

    async def run():
        async with work(ports, tmp_path, judged=False) as c, c.client("n1") as orb:
            box, handing = orb.object(Box, "box"), c.nodes["n1"].life.handing
            await asyncio.gather(*(box.put.submit("a", n) for n in range(6)))
            await performed(c, "box", 6)
            (convoy,) = residents(c, "box")[0].recent.requests()
            first, second, *_, last = convoy.riders
            others = [r._replace(invocation=r.invocation._replace(client="c-lost")) for r in (first, second)]
            args = msgspec.msgpack.encode([*msgspec.msgpack.decode(convoy.args)[:2], args_of(convoy)[-1]])
            lost = msgspec.structs.replace(convoy, riders=(*others, last), args=args)
            for _ in range(2):
                handing._send_again("box@n1", [lost])
                await performed(c, "box", 8)
            for each in residents(c, "box"):
                assert each.object.things == {"a": [0, 1, 2, 3, 4, 5, 0, 1]}

    asyncio.run(run())


def test_many_calls_that_take_a_while_do_not_hold_up_the_loop(ports, tmp_path, monkeypatch):
    """Each is short; all of a convoy together are not. A thread performs them."""
    where, perform = [], Riding.perform

    def noted(self):
        where.append(threading.current_thread() is threading.main_thread())
        perform(self)

    async def run():
        async with work(ports, tmp_path) as c, c.client("n1") as orb:
            monkeypatch.setattr(Riding, "perform", noted)
            box = orb.object(Box, "box")
            await asyncio.gather(*(box.put.submit("a", n) for n in range(20)))
            for node in c.nodes.values():
                node.life.stage.shorts[Box, declaration(Box).methods["put"]].average = 0.9 * LONG
            await performed(c, "box", 20)
            assert where and all(where)
            where.clear()
            assert await asyncio.gather(*(box.put.submit("a", n) for n in range(20))) == list(range(21, 41))
            await performed(c, "box", 40)
            assert where and not any(where)

    asyncio.run(run())


def test_a_go_of_the_loop_is_short(monkeypatch):
    class Body:
        brief, watched = True, None

        def perform(self):
            clock[0] += LONGEST / 3

    clock = [0.0]
    monkeypatch.setattr(turn, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    line = Turn(None)
    for _ in range(10):
        line.enter(Body())
    goes = 1
    while line.go():
        assert line.waiting > 0
        goes += 1
    assert goes == 3 and not line.waiting


def test_nothing_gets_lost_where_a_life_ends(ports, tmp_path, monkeypatch):
    """A thread has performed a convoy when the life of its node ends: it is in the state, and known to be."""

    async def run():
        async with work(ports, tmp_path) as c, c.client("n1") as orb:
            box, resident = orb.object(Box, "box"), c.nodes["n3"].life.residents["box@n3"]
            stage = c.nodes["n3"].life.stage
            done, free = stage.done, []

            def told(performance, completed):
                taken = []
                other = threading.Thread(target=lambda: taken.append(resident.ending.acquire(blocking=False)))
                other.start()
                other.join()
                free.append(taken[0])
                done(performance, completed)

            monkeypatch.setattr(stage, "done", told)
            await asyncio.gather(*(box.put.submit("a", n) for n in range(6)))
            await performed(c, "box", 6)
            assert free == [False], "a life cannot end between what was done and what is told of it"

    asyncio.run(run())
