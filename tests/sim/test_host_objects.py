"""Real objects in the seeded world."""

import pytest

from framework import BadRequest, NoSuchMethod, NoSuchObject, Object, RemoteError, Unavailable, method
from framework.com.receipt import CREC
from framework.ids import Node
from framework.sim.host_objects import host
from framework.sim.world import Faults
from framework.trace.digest import canonical, digest
from objects.bank import Bank
from objects.counter import Counter


class Diary(Object):
    """Everything conflicts: the order of all calls shows."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.seen: set[str] = set()

    @method
    def write(self, text: str) -> int:
        self.pages.append(text)
        self.seen |= {text}
        if text == "half":
            raise ValueError("no more ink")
        return len(self.pages)

    @method
    def chance(self) -> str:
        self.pages.append(f"{self.random()} {self.uuid()} {self.now()}")
        return self.pages[-1]

    @method
    async def later(self, text: str) -> str:
        self.pages.append(text)
        return text.upper()

    @method
    def call(self) -> None:
        self.orb.object(Diary, "other").write("x")

    @method
    def lie(self) -> int:
        self.pages.append("lie")
        return "no number"  # type: ignore[return-value]


def one(script, **options):
    """A client at n1 runs a script on a diary at three nodes."""
    hosts = host(3, {"diary": Diary}, **options)
    hosts.client("ann", "n1", script)
    verdict = hosts.run()
    assert not verdict.violations
    assert len({hosts.digest(r) for r in hosts.replicas}) == 1
    return hosts


def test_results_come_back_typed():
    got = []

    def ann(me):
        for text in ("a", "b"):
            call = me.call("diary", "write", text)
            yield call
            got.append(call.result())

    hosts = one(ann)
    assert got == [1, 2]
    assert all(hosts[r].pages == ["a", "b"] for r in hosts.replicas)


def test_what_raises_leaves_no_trace_on_any_replica():
    told = []

    def ann(me):
        yield me.call("diary", "write", "a")
        for name, *args in (("write", "half"), ("lie",), ("call",)):
            call = me.call("diary", name, *args, receipt=CREC)
            yield call
            with pytest.raises(RemoteError) as error:
                call.result()
            told.append(str(error.value))

    hosts = one(ann)
    assert [hosts[r].pages for r in hosts.replicas] == [["a"]] * 3
    assert [hosts[r].seen for r in hosts.replicas] == [{"a"}] * 3
    assert told[0] == "ValueError: no more ink"
    assert "annotation does not allow" in told[1]
    assert "cannot call other objects" in told[2]
    ends = [r for t in hosts.world.traces() for r in t.records if r.event == "end" and not r.committed]
    assert len(ends) == 9
    states = [r for t in hosts.world.traces() for r in t.records if r.event == "state"]
    assert [r.performed for r in states] == [1, 1, 1]


def test_chance_and_time_are_the_same_everywhere_and_differ_from_call_to_call():
    def ann(me):
        yield me.call("diary", "chance")
        yield me.call("diary", "chance")

    hosts = one(ann)
    pages = [hosts[r].pages for r in hosts.replicas]
    assert pages[0] == pages[1] == pages[2]
    assert pages[0][0] != pages[0][1]


def test_async_methods_and_asynchronous_and_oneway_calls():
    def ann(me):
        first = me.submit("diary", "later", "a")
        me.oneway("diary", "write", "b")
        with pytest.raises(Unavailable, match="no response yet"):
            first.result()
        yield 1.0
        yield first
        assert first.result() == "A"
        yield first  # once more is no wait
        yield me.oneway("diary", "write", "c")

    hosts = one(ann)
    assert hosts["diary@n2"].pages == ["a", "b", "c"]


def test_a_read_goes_to_the_replica_at_home_and_sees_what_its_session_wrote():
    got = []

    def ann(me):
        yield me.call("bank", "deposit", "ann", 5)
        call = me.call("bank", "balance", "ann")
        yield call
        got.append((call.result(), call.responses[0].replica))

    hosts = host(3, {"bank": Bank})
    hosts.client("ann", "n3", ann)
    assert not hosts.run().violations
    assert got == [(5, "bank@n3")]


@pytest.mark.parametrize("seed", range(6))
def test_faults_make_no_difference_to_the_end(seed):
    hosts = host(
        seed,
        {"bank": Bank, "counter": Counter},
        nodes=["n1", "n2", "n3", "n4"],
        on={"bank": ["n1", "n2", "n3"]},
        faults=Faults(loss=0.2, duplication=0.1, reorder=True, pauses=1),
    )
    hosts.world.cut(Node("n1"), Node("n3"), 5.0, 80.0)

    def client(me):
        for _ in range(4):
            yield me.call("bank", "deposit", "shop", 3)
            me.oneway("counter", "increment")
            yield me.call("bank", "withdraw", "shop", 2)

    for n, name in enumerate(("ann", "bob", "carl")):
        hosts.client(name, f"n{n + 1}", client, start=float(n))
    verdict = hosts.run()
    assert not verdict.violations
    assert {str(vars(hosts[f"bank@n{n}"])) for n in (1, 2, 3)} == {"{'accounts': {'shop': 12}}"}
    assert [hosts[f"counter@n{n}"].value for n in (1, 2, 3, 4)] == [12] * 4
    assert "bank@n4" not in hosts.replicas


def test_one_seed_one_run():
    def traces(seed):
        hosts = host(seed, {"diary": Diary}, faults=Faults(loss=0.3))
        for name, home in (("ann", "n1"), ("bob", "n2")):
            hosts.client(name, home, lambda me: (me.call("diary", "write", me.name) for _ in range(3)))
        hosts.run()
        return hosts.world.traces()

    assert traces(1) == traces(1)
    assert traces(1) != traces(2)


def test_a_world_that_cannot_come_to_its_end_says_so():
    hosts = host(1, {"diary": Diary})
    hosts.client("ann", "n1", lambda me: (1.0 for _ in iter(int, 1)))
    verdict = hosts.run(limit=50.0)
    assert [v.rule for v in verdict.violations] == ["A8"]


def test_mistakes_are_told_to_who_makes_them():
    hosts = host(1, {"diary": Diary})
    told = []

    def ann(me):
        for wrong in (("dairy", "write", "a"), ("diary", "wirte", "a"), ("diary", "write", 1)):
            with pytest.raises((NoSuchObject, NoSuchMethod, BadRequest)) as error:
                me.call(*wrong)
            told.append(str(error.value))
        yield 0.0

    hosts.client("ann", "n1", ann)
    hosts.run()
    assert "no object 'dairy'; there are: diary" in told[0]
    assert "did you mean 'write'?" in told[1]
    assert "argument text=1" in told[2]
    with pytest.raises(BadRequest, match="there is a client ann already"):
        hosts.client("ann", "n1", ann)
    with pytest.raises(BadRequest, match="its home on 'n9'; nodes: n1, n2, n3"):
        hosts.client("bob", "n9", ann)


def test_digests_see_content_and_not_the_order_of_dicts_and_sets():
    assert digest({"a": 1, "b": {3, 1, 2}}) == digest({"b": {2, 3, 1}, "a": 1})
    different = [{"a": 1}, {"a": 2}, {"a": "1"}, {"a": [1]}, {"a": (1,)}, {"a": {1}}, {"a": {1: 1}}, {"b": 1}]
    assert len({digest(d) for d in different}) == len(different)


def test_objects_inside_a_state_count_by_their_attributes():
    class Point:
        def __init__(self, x):
            self.x = x

    class Slotted:
        __slots__ = ("x",)

        def __init__(self, x):
            self.x = x

    for kind in (Point, Slotted):
        assert canonical(kind(1)) == canonical(kind(1)) != canonical(kind(2))
