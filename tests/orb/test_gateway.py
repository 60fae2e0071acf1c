"""The gateway of three real nodes: JSON in, JSON out; the oracle judges each run."""

import asyncio
import json
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import msgspec
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from framework.com.events import Session
from framework.net.wire.orb_pb2 import (
    DescribeRequest,
    ErrorDetail,
    InvokeRequest,
    ListRequest,
    RequestId,
)
from framework.net.wire.orb_pb2_grpc import GatewayStub
from framework.orb.gateway import SERVICES
from tests.orb import cluster as clusters
from tests.orb.cluster import cluster
from tests.orb.typed import Gate

OBJECTS = (
    clusters.OBJECTS
    + '[objects.typed]\nclass = "tests.orb.typed:Typed"\n'
    + '[objects.gate]\nclass = "tests.orb.typed:Gate"\n'
)

#: As a caller has it when all nodes have lost what they had.
OF_ANOTHER_GROUP = msgspec.msgpack.encode((Session((), 5, "1:tran@n1:0 received", 1, b"1" * 16),))


@pytest.fixture
def play(ports, tmp_path):
    """Run a coroutine function with a cluster and a stub for each node."""

    def run(act):
        async def whole():
            Gate.opened = asyncio.Event()
            async with cluster(ports(3), tmp_path, objects=OBJECTS) as c, asyncio.timeout(60), stubs(c) as every:
                try:
                    await act(c, *every)
                finally:
                    Gate.opened.set()

        asyncio.run(whole())

    return run


@asynccontextmanager
async def stubs(c):
    channels = [grpc.aio.insecure_channel(c.config.address(n)) for n in c.nodes]
    try:
        yield [GatewayStub(ch) for ch in channels]
    finally:
        for channel in channels:
            await channel.close()


def ask(what, *args, named=None, **more):
    name, method = what.split(".")
    return InvokeRequest(object=name, method=method, args_json=json.dumps(named or list(args)), **more)


async def value(stub, what, *args, **more):
    return json.loads((await stub.Invoke(ask(what, *args, **more))).result_json)


async def fault(call):
    """The status, the details and the ErrorDetail of an RPC that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    trailing = dict(caught.value.trailing_metadata())
    return caught.value.code(), caught.value.details(), ErrorDetail.FromString(trailing["obo-error-bin"])


async def until(done):
    while not done():
        await asyncio.sleep(0.01)


def idle(node):
    """Does the gateway of this node hold nothing any more?"""
    left = [s for s in node.life.com.calls.sessions if s.startswith(("g-", "i-"))]
    return not left and not node.gateway.in_flight and not node.gateway._busy


def test_a_call_at_any_node_and_a_read_that_misses_nothing(play):
    async def act(c, *every):
        for round in range(20):
            assert await value(every[round % 3], "bank.deposit", "ann", 1) is None
            assert await value(every[(round + 1) % 3], "bank.balance", "ann") == round + 1
        response = await every[0].Invoke(ask("bank.audit", receipt="all"))
        assert json.loads(response.result_json) == {"ann": 20}
        assert sorted(r.replica for r in response.replies) == ["bank@n1", "bank@n2", "bank@n3"]
        assert {r.result_json for r in response.replies} == {'{"ann":20}'}
        assert response.node == "n1"
        assert all(idle(n) for n in c.nodes.values())

    play(act)


def test_ways_to_ask(play):
    async def act(c, one, two, three):
        await one.Invoke(ask("bank.deposit", named={"amount": 7, "account": "ann"}))
        assert len((await two.Invoke(ask("bank.balance", "ann", receipt="first"))).replies) == 1
        assert len((await two.Invoke(ask("bank.balance", "ann", receipt="2"))).replies) == 2
        assert len((await two.Invoke(ask("bank.balance", "ann", receipt="majority"))).replies) == 2
        assert await value(three, "counter.increment") is None  # the default
        assert await value(three, "counter.show") == 1
        empty = await three.Invoke(InvokeRequest(object="counter", method="show"))
        assert empty.result_json == "1"

    play(act)


def test_a_session_orders_what_follows_it(play):
    """A read of another node waits for the one-way call that it comes after, which is still on its way."""

    async def act(c, one, two, three):
        lines, held = c.nodes["n1"].peers.lines, []
        for peer in ("n2", "n3"):
            lines[peer].transmit = lambda data, peer=peer: held.append((peer, data))
        sent = await one.Invoke(ask("counter.increment", 1, oneway=True))
        assert not sent.replies and not sent.result_json and sent.session
        read = asyncio.ensure_future(three.Invoke(ask("counter.show", session=sent.session)))
        entries = c.nodes["n3"].life.com.hosts["counter@n3"].order.entries
        await until(lambda: read.done() or any(e.request and e.proposal is None for e in entries.values()))
        assert not read.done()
        for line in lines.values():
            del line.transmit
        for peer, data in held:
            lines[peer].transmit(data)
        response = await read
        assert (response.result_json, [r.replica for r in response.replies]) == ("1", ["counter@n3"])
        assert await value(one, "counter.show", session=response.session) == 1

    play(act)


def test_many_at_once_leave_nothing_behind(play):
    """Names are used again: replicas remember each of them."""

    async def act(c, *every):
        for _ in range(3):
            await asyncio.gather(*(every[i % 3].Invoke(ask("counter.increment", 1)) for i in range(150)))
        assert await value(every[0], "counter.show") == 450
        assert all(idle(n) for n in c.nodes.values())
        assert sum(n.gateway._made for n in c.nodes.values()) <= 151
        hosts = [h for n in c.nodes.values() for h in n.life.com.hosts.values() if h.name == "counter"]
        assert all(len(h.replies._roots) <= 151 for h in hosts)
        assert all(len(h.replies) <= 151 for h in hosts), "answers that nobody can ask for again are kept"

    play(act)


def test_the_same_id_is_performed_once_wherever_it_comes(play):
    async def act(c, *every):
        number = RequestId(client="shop-1", number=41, made_at=1000.5)
        first = await every[0].Invoke(ask("odd.chance", receipt="all", id=number))
        for stub in (*every, every[0]):
            again = await stub.Invoke(ask("odd.chance", receipt="all", id=number))
            assert again.result_json == first.result_json
        assert json.loads(first.result_json)[0] == "1000.5"
        assert [len(o.log) for o in c.objects("odd")] == [3, 3, 3]
        other = await every[1].Invoke(ask("odd.chance", receipt="all", id=RequestId(client="shop-1", number=42)))
        assert len(json.loads(other.result_json)) == 6
        for _ in range(3):
            code, _, detail = await fault(every[2].Invoke(ask("odd.wrong", id=RequestId(client="shop-2", number=1))))
            assert (code, detail.remote_error) == (grpc.StatusCode.UNKNOWN, "ZeroDivisionError")
        assert all(idle(n) for n in c.nodes.values())

    play(act)


def test_the_same_id_twice_at_once(play):
    """Whoever comes last gets the answer; the other one is told so."""

    async def act(c, one, two, three):
        request = ask("gate.pass_", receipt="all", id=RequestId(client="twice", number=1))
        calls = [asyncio.ensure_future(one.Invoke(request)) for _ in range(2)]
        (early,), (late,) = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        code, details, _ = await fault(early)
        assert code == grpc.StatusCode.ABORTED and "came again" in details
        Gate.opened.set()
        assert (await late).result_json == "null"
        assert [g.passed for g in c.objects("gate")] == [1, 1, 1]
        assert idle(c.nodes["n1"])

    play(act)


@pytest.mark.parametrize("more", [{}, {"id": RequestId(client="gone", number=1)}])
def test_cancellation_frees_what_it_held(play, more):
    async def act(c, one, two, three):
        node = c.nodes["n1"]
        call = one.Invoke(ask("gate.pass_", **more))
        await until(lambda: node.gateway.in_flight)
        call.cancel()
        await until(lambda: idle(node))

    play(act)


@pytest.mark.parametrize("more", [{"timeout": 0.2}, {}])
def test_the_sooner_deadline_counts(play, more):
    async def act(c, one, two, three):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await one.Invoke(ask("gate.pass_", timeout_s=20.0 if more else 0.2), **more)
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        if not more:  # then the node says so itself
            trailing = dict(caught.value.trailing_metadata())
            detail = ErrorDetail.FromString(trailing["obo-error-bin"])
            assert (detail.error, detail.happened) == ("DeadlineExceeded", ErrorDetail.UNKNOWN)
        await until(lambda: idle(c.nodes["n1"]))

    play(act)


def test_types_come_from_the_signature(play):
    async def act(c, one, two, three):
        when = "2024-05-06T07:08:09+00:00"
        leg = {"start": {"x": 3}, "when": when}
        told = await value(one, "typed.kinds", "AQI=", when, [1, "a"], leg, "1.50", ["b", "a"])
        assert told[0] == r"bytes b'\x01\x02'"
        assert told[1].startswith("datetime datetime.datetime(2024, 5, 6, 7, 8, 9")
        assert told[2] == "tuple (1, 'a')"
        assert told[3].startswith("Leg Leg(start=Point(x=3, y=0)")
        assert told[4:] == ["Decimal Decimal('1.50')", "list ['a', 'b']"]
        number = "12345678-1234-5678-1234-567812345678"
        assert await value(two, "typed.back", number, {"7": "AQI="}) == [number, {"7": "AQI="}, {"x": 1, "y": 0}]
        for plain in (None, 2**63, -(2**63), 1.5, "ä\n", [1, {"a": [True]}]):
            assert await value(three, "typed.any", plain) == plain

    play(act)


@pytest.mark.parametrize(
    ("what", "text", "complaint"),
    [
        ("bank.deposit", '["ann", NaN]', "JSON has no NaN"),
        ("bank.deposit", '["ann", -Infinity]', "JSON has no Infinity"),
        ("bank.deposit", '["ann", 123456789012345678901234]', "amount: 123456789012345678901234 does not fit"),
        ("typed.any", '[{"a": [36893488147419103232]}]', "value: 36893488147419103232 does not fit"),
        ("typed.any", "[1e999]", "out of range"),
        ("bank.deposit", '["ann", "much"]', "argument amount (int): Expected 'int', got 'str'"),
        ("bank.deposit", '["ann"]', "'amount' is missing (it takes: account: str, amount: int)"),
        ("bank.deposit", '{"account": "ann", "amont": 1}', "did you mean 'amount'?"),
        ("bank.deposit", '["ann", 1, 2]', "takes 2 arguments, 3 were given"),
        ("bank.deposit", '"ann"', "must be a JSON array"),
        ("bank.deposit", '["ann", 1', "truncated"),
        ("bank.deposit", "[" * 100_000, "recursion"),
        ("typed.kinds", '["!", 0, 0, 0, 0, 0]', "argument data (bytes)"),
    ],
)
def test_wrong_arguments_are_named(play, what, text, complaint):
    async def act(c, one, two, three):
        name, method = what.split(".")
        code, details, detail = await fault(one.Invoke(InvokeRequest(object=name, method=method, args_json=text)))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert complaint in details
        assert (detail.error, detail.text, detail.happened) == ("BadRequest", details, ErrorDetail.NO)

    play(act)


@pytest.mark.parametrize(
    ("what", "args", "more", "code", "complaint"),
    [
        ("bnk.deposit", ("ann", 1), {}, "NOT_FOUND", "did you mean 'bank'?"),
        ("bank.depost", ("ann", 1), {}, "UNIMPLEMENTED", "did you mean 'deposit'?"),
        ("bank._left", ("ann", 1), {}, "UNIMPLEMENTED", "no method"),
        ("bank.balance", ("ann",), {"oneway": True}, "INVALID_ARGUMENT", "one-way is for '-> None'"),
        ("bank.deposit", ("ann", 1), {"receipt": "some"}, "INVALID_ARGUMENT", "majority, all, first, or how many"),
        ("bank.deposit", ("ann", 1), {"receipt": "4"}, "INVALID_ARGUMENT", "can never complete"),
        ("bank.deposit", ("ann", 1), {"receipt": "all", "oneway": True}, "INVALID_ARGUMENT", "no receipt"),
        ("bank.deposit", ("ann", 1), {"timeout_s": -1.0}, "INVALID_ARGUMENT", "timeout_s"),
        ("bank.deposit", ("ann", 1), {"timeout_s": float("nan")}, "INVALID_ARGUMENT", "timeout_s"),
        ("bank.deposit", ("ann", 1), {"session": b"\xc1"}, "INVALID_ARGUMENT", "give back the bytes"),
        (
            "bank.deposit",
            ("ann", 1),
            {"session": OF_ANOTHER_GROUP},
            "INVALID_ARGUMENT",
            "formed anew after it, and bank",
        ),
        ("bank.deposit", ("ann", 1), {"id": RequestId(client="a b")}, "INVALID_ARGUMENT", "is no name"),
        ("bank.deposit", ("ann", 1), {"id": RequestId(number=3)}, "INVALID_ARGUMENT", "client"),
        ("bank.deposit", ("ann", 1), {"id": RequestId(client="a", number=2**64 - 1)}, "INVALID_ARGUMENT", "number"),
        ("typed.odd_number", ("nan",), {}, "UNKNOWN", "JSON has no NaN"),
        ("typed.odd_number", ("inf",), {}, "UNKNOWN", "JSON has no NaN and no infinity"),
    ],
)
def test_each_error_has_its_status(play, what, args, more, code, complaint):
    async def act(c, one, two, three):
        found, details, _ = await fault(one.Invoke(ask(what, *args, **more)))
        assert found.name == code
        assert complaint in details
        assert await value(one, "bank.audit") == {}
        assert idle(c.nodes["n1"])

    play(act)


def test_what_a_method_raised_comes_with_its_traceback(play):
    async def act(c, one, two, three):
        code, details, detail = await fault(one.Invoke(ask("bank.withdraw", "ann", 5)))
        assert code == grpc.StatusCode.UNKNOWN
        assert details == "RefusedError: ann has 0, not 5"
        assert (detail.remote_error, detail.remote_text) == ("RefusedError", "ann has 0, not 5")
        assert detail.happened == ErrorDetail.YES
        assert "in _left" in detail.remote_traceback and "raised at bank@" in detail.remote_traceback
        account = "ä" * 20_000  # more than metadata may carry
        code, details, detail = await fault(one.Invoke(ask("bank.withdraw", account, 5)))
        assert code == grpc.StatusCode.UNKNOWN and detail.remote_error == "RefusedError"
        assert details.startswith("RefusedError: ä") and details.endswith("...")

    play(act)


def test_looking(play):
    async def act(c, one, two, three):
        listed = {o.name: o for o in (await one.List(ListRequest())).objects}
        assert set(listed) == {"bank", "counter", "shop", "odd", "typed", "gate"}
        assert listed["counter"].replicas == ["counter@n2", "counter@n3"]
        assert listed["counter"].class_name == "objects.counter:Counter"
        told = await two.Describe(DescribeRequest(object="bank"))
        assert told.object == listed["bank"]
        assert told.doc == "Accounts come into being with the first money on them."
        methods = {m.name: m for m in told.methods}
        assert [(p.name, p.type, p.required) for p in methods["deposit"].parameters] == [
            ("account", "str", True),
            ("amount", "int", True),
        ]
        assert (methods["audit"].returns, methods["audit"].readonly) == ("dict[str, int]", True)
        assert json.loads(methods["balance"].returns_schema) == {"type": "integer"}
        assert (methods["balance"].key, methods["transfer"].key) == ("account", "source, target")
        pairs = {(c.first, c.second): c.where_keys_meet for c in told.conflicts}
        assert pairs["audit", "deposit"] is False and pairs["deposit", "withdraw"] is True
        assert ("deposit", "deposit") not in pairs
        back = {m.name: m for m in (await two.Describe(DescribeRequest(object="typed"))).methods}["back"]
        assert json.loads(back.parameters[2].default_json) == {"x": 1, "y": 0}
        slow = {m.name: m for m in (await two.Describe(DescribeRequest(object="odd"))).methods}["slow"]
        assert slow.is_async
        code, details, _ = await fault(two.Describe(DescribeRequest(object="bnk")))
        assert code == grpc.StatusCode.NOT_FOUND and "did you mean 'bank'?" in details

    play(act)


def test_health_and_drain(play):
    """A node that stops says so, answers what is in flight, and takes nothing more."""

    async def act(c, one, two, three):
        async with grpc.aio.insecure_channel(c.config.address("n1")) as channel:
            health = health_pb2_grpc.HealthStub(channel)

            async def states():
                answers = [await health.Check(health_pb2.HealthCheckRequest(service=s)) for s in ("", *SERVICES)]
                return {a.status for a in answers}

            assert "obo.orb.v1.Gateway" in SERVICES
            assert await states() == {health_pb2.HealthCheckResponse.SERVING}
            watch = health.Watch(health_pb2.HealthCheckRequest(service=""))
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            slow = asyncio.ensure_future(one.Invoke(ask("gate.pass_")))
            await until(lambda: c.nodes["n1"].gateway.in_flight)
            draining = asyncio.ensure_future(c.nodes["n1"].drain())
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            assert await states() == {health_pb2.HealthCheckResponse.NOT_SERVING}
            code, details, detail = await fault(one.Invoke(ask("bank.deposit", "ann", 1)))
            assert (code, details) == (grpc.StatusCode.UNAVAILABLE, "n1 is stopping")
            assert detail.happened == ErrorDetail.NO
            Gate.opened.set()
            assert (await slow).result_json == "null"
            await draining
            watch.cancel()

    play(act)


def test_a_node_that_stops_at_once_ends_what_is_in_flight(play):
    async def act(c, one, two, three):
        call = asyncio.ensure_future(one.Invoke(ask("gate.pass_")))
        await until(lambda: c.nodes["n1"].gateway.in_flight)
        c.nodes["n1"].gateway.close()  # as stop() does
        code, details, detail = await fault(call)
        assert (code, detail.happened) == (grpc.StatusCode.DATA_LOSS, ErrorDetail.UNKNOWN)
        assert "n1 has stopped" in details

    play(act)
