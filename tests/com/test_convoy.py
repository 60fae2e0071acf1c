"""Calls of clients that travel together (framework.com.convoy): who goes with whom, and that each is performed once and
answered by itself, whatever becomes of its neighbours. The simulator attacks the same with faults (``--convoys``)."""

from itertools import combinations, product
from typing import Any

import msgspec
import pytest

from framework.com import convoy, together
from framework.com.convoy import args_of, pack_args, pack_rides, rides_of, split
from framework.com.events import AnyEffect, Cancel, Completed, Deliver, Leave, Ride, Submit, Together
from framework.com.limits import Limits
from framework.com.messages import Request, Rider
from framework.com.receipt import CREC, Receipt, quorum
from framework.com.telling import Duplicate, Ended, Rode, Sent
from framework.com.together import union
from framework.errors import BadMessage
from framework.footprint import AGAINST, Footprint, Keys, Mode, Relation
from framework.ids import Invocation, Node, ObjectName, Replica
from tests.paper.stage import Instance, Stage

from .fingerprint import fingerprint
from .trio import N1, arrived, group, nodes, write

MODES: tuple[Mode, ...] = ("r", "w", "ir", "iw")
BRIEF = frozenset(["w", "add", "free"])


class Convoy(Instance):
    """An instance that performs a convoy: each of its calls, but for those that are skipped."""

    def commit(self, output: bytes = b"", safe: bool = True) -> None:
        self.perform(safe=safe)

    def perform(self, *raises: str, safe: bool = True) -> None:
        """All but these are performed well."""
        self.over = True
        rides: list[Ride | None] = []
        for i, rider in enumerate(self.effect.request.riders):
            name = str(rider.invocation)
            if i in self.effect.skips:
                rides.append(None)
                continue
            ok = name not in raises
            rides.append(Ride(ok, f"{name} at {self.replica}".encode(), True))
            if ok:
                self.stage.ledgers[self.replica].commit(name, self.effect.footprint)
        ok = any(ride is not None and ride.ok for ride in rides)
        self.stage.do(self.node, Completed(self.sid, ok, safe=safe, rides=tuple(rides)))


class Cars(Stage):
    """A stage on which calls leave together."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__("n1 n2 n3", limits=limits)
        self.object("f", "n1 n2 n3", "w/w w/add slow/w slow/add")
        self.object("g", "n3", "w/w")
        for name in ("ann", "bob", "eve"):
            self.client(name, "n1")

    def _carry_out(self, node: Node, effect: AnyEffect) -> None:
        super()._carry_out(node, effect)
        if isinstance(effect, Deliver) and effect.request.riders:
            self.instances[effect.sid] = Convoy(self, node, effect)

    def call(self, client: str, what: str, receipt: Receipt = quorum(2), **more: Any) -> Submit:  # noqa: B008
        return self.clients[client].event(what, "sync", receipt, **more)

    def leave(self, *submits: Submit, node: str = "n1") -> None:
        """These were gathered at their home, and leave."""
        self.do(node, Together(f"v-{node}", submits, BRIEF))

    def requests(self) -> list[list[str]]:
        """What was sent, once for all destinations: the calls in each request."""
        first: dict[Any, Request] = {}
        for player in self._players.values():
            for m in player.com.posted:
                if isinstance(m, Request):
                    first.setdefault(m.group, m)
        return [[str(r.invocation) for r in m.riders] or [str(m.invocation)] for m in first.values()]

    def convoys(self, at: str) -> list[Convoy]:
        return [i for i in self.instances.values() if isinstance(i, Convoy) and i.replica == at]

    def told(self, at: str) -> list[str]:
        """The lives of calls at a replica, as the trace has them."""
        out = []
        for _, e in self.heard:
            if isinstance(e, Rode) and e.replica == at:
                out.append(f"+{e.rider.invocation}")
            elif isinstance(e, Ended) and e.replica == at:
                out.append(f"-{e.invocation}")
            elif isinstance(e, Duplicate) and e.replica == at:
                out.append(f"={e.invocation}")
        return out

    def answered(self, client: str) -> list[tuple[int, list[tuple[str, bytes]], bool]]:
        got = self.clients[client].received
        return [(r.call, [(a.status, a.body) for a in r.responses], r.complete) for r in got]

    def end(self, *raises: str) -> None:
        for instance in list(self.instances.values()):
            if isinstance(instance, Convoy) and not instance.over:
                instance.perform(*raises)


def good(s: Cars) -> bool:
    """By the definitions; and nothing is left."""
    violations = s.finish().violations
    assert violations == [], violations
    assert not any(s.com(n).calls._waiting for n in s.nodes)
    return True


# what all of them touch


def footprints(keys: str) -> list[Footprint]:
    """All, of one method: without key, and with each mode of each key."""
    inside: list[Keys] = [
        tuple((k, m) for k, m in zip(keys, modes, strict=True) if m)
        for modes in product(("", *MODES), repeat=len(keys))
    ]
    return [Footprint("m"), *(Footprint("m", k) for k in inside)]


def test_the_union_conflicts_with_all_that_one_of_them_conflicts_with() -> None:
    """protocol.md §5.7: it orders more than each alone would need, never less. More only where a key is read by one and
    meant to be written by another: there is no mode for both but to write it."""
    every = footprints("kl")
    relation = Relation([("m", "m"), ("m", "n")], intentions=True)
    others = [Footprint("n", f.keys) for f in every] + every
    for a, b in product(every, every):
        both = union([a, b])
        mixed = {
            frozenset(p) for p in product(dict(a.keys or ()).items(), dict(b.keys or ()).items()) if p[0][0] == p[1][0]
        }
        exact = not any({m for _, m in pair} == {"r", "iw"} for pair in mixed)
        for other in others:
            needs = relation.conflict(a, other) or relation.conflict(b, other)
            has = relation.conflict(both, other)
            assert has or not needs, f"{a} + {b} = {both} against {other}"
            assert has == needs or not exact, f"{a} + {b} = {both} against {other}"


@pytest.mark.parametrize(("a", "b"), list(product(MODES, MODES)))
def test_two_modes_of_a_key_are_the_weakest_that_is_as_strong_as_both(a: Mode, b: Mode) -> None:
    [(_, found)] = union([Footprint("m", (("k", a),)), Footprint("m", (("k", b),))]).keys or ()
    strong = [m for m in MODES if set(AGAINST[m]) >= {*AGAINST[a], *AGAINST[b]}]
    assert found == min(strong, key=lambda m: len(AGAINST[m]))


def test_a_union_of_many_is_as_that_of_two_and_two() -> None:
    some = [Footprint("m", keys) for keys in ((("a", "r"),), (("a", "iw"), ("b", "ir")), (), (("b", "w"), ("c", "r")))]
    assert dict(union(some).keys or ()) == {"a": "w", "b": "w", "c": "r"}
    assert union([*some, Footprint("m")]) == Footprint("m")


# who goes with whom


def test_sessions_that_wait_for_nothing_share_a_request() -> None:
    s = Cars()
    s.leave(s.call("ann", "f.w(a)"), s.call("bob", "f.w(b)"), s.call("eve", "f.w(a)"))
    assert s.requests() == [["ann/1", "bob/1", "eve/1"]]
    assert s.request("v-n1/0").parts[0].footprint == Footprint("w", (("a", "w"), ("b", "w")))
    s.end()
    assert [len(s.answered(c)) for c in ("ann", "bob", "eve")] == [1, 1, 1]
    assert good(s)


def test_calls_of_one_session_travel_by_themselves_in_their_order() -> None:
    """They follow each other anyway; others need not wait for what they wait for, where something takes long."""
    s = Cars()
    s.client("joe", "n1").oneway("f.slow(z)", "slow")
    s.leave(*[s.call(c, "f.add(a)") for c in ("ann", "bob", "ann", "eve", "ann")])
    assert s.requests()[1:] == [["bob/1", "eve/1"], ["ann/1", "ann/2", "ann/3"]]
    assert good(s)


def test_where_all_is_over_in_a_moment_all_travel_together_in_the_order_of_each_session() -> None:
    s = Cars()
    s.leave(*[s.call(c, "f.w(a)") for c in ("ann", "bob", "ann", "eve", "ann")])
    assert s.requests() == [["ann/1", "bob/1", "ann/2", "eve/1", "ann/3"]]
    s.leave(s.call("bob", "f.w(b)"), s.call("ann", "f.w(c)"))  # brief ones of theirs are under way
    assert s.requests()[1:] == [["bob/2", "ann/4"]]
    assert s.carried("v-n1/1") == {f"f@n{i}": {"v-n1/0"} for i in (1, 2, 3)}
    s.end()
    s.end()
    assert [c for c in s.told("f@n2") if c[0] == "+" and "ann" in c] == ["+ann/1", "+ann/2", "+ann/3", "+ann/4"]
    assert good(s)


def test_a_session_of_which_a_call_goes_alone_shares_none_of_them() -> None:
    """A2: else that one, which is repeated here, would pass those before it."""
    s = Cars()
    s.leave(s.call("ann", "f.w(a)"))
    first = s.call("ann", "f.w(b)")
    s.leave(s.call("bob", "f.w(c)"), first, s.call("eve", "f.w(d)"), first, s.call("ann", "f.w(e)"))
    assert s.requests()[1:] == [["ann/2"], ["ann/2"], ["bob/1", "eve/1"], ["ann/3"]]
    assert good(s)


def test_what_has_left_is_under_way_until_it_is_received() -> None:
    s = Cars()
    convoys = s.com("n1").calls.convoys
    assert not convoys.under_way(ObjectName("f"))
    s.leave(s.call("ann", "f.w(a)"), s.call("bob", "f.w(b)"))
    s.leave(s.call("eve", "f.w(c)"))
    assert convoys.under_way(ObjectName("f")) and not convoys.under_way(ObjectName("g"))
    s.end()
    assert convoys.under_way(ObjectName("f"))  # one that left alone counts, too
    assert good(s)
    assert not convoys.under_way(ObjectName("f"))


def test_a_session_with_calls_under_way_shares_with_nobody() -> None:
    s = Cars()
    s.clients["ann"].sync("f.add(x)", CREC)
    s.leave(s.call("ann", "f.add(a)"), s.call("bob", "f.add(b)"), s.call("eve", "f.add(c)"))
    assert s.requests() == [["ann/1"], ["bob/1", "eve/1"], ["ann/2"]]
    s.leave(s.call("ann", "f.add(d)"), s.call("ann", "f.add(e)"))
    assert s.requests()[3:] == [["ann/3", "ann/4"]]
    assert {"n1"} == {origin for _, marks in s.request("v-n1/1").context for origin, _ in marks}
    assert good(s)


def test_a_session_that_knows_of_other_replicas_shares_with_nobody() -> None:
    """Its neighbours would have to wait for those, also elsewhere."""
    s = Cars()
    s.hold("n1->n3")
    s.clients["ann"].oneway("g.w", "far")
    s.leave(s.call("ann", "f.w(a)"), s.call("bob", "f.w(b)"), s.call("eve", "f.w(c)"))
    assert s.requests() == [["ann/1"], ["bob/1", "eve/1"], ["ann/2"]]
    assert s.carried("v-n1/0") == {} and s.carried("ann/2") == {"g@n3": {"far"}}
    assert good(s)


def test_what_each_of_them_follows_comes_first() -> None:
    """protocol.md §5.7: the context of a convoy is that of all its callers."""
    s = Cars()
    s.client("joe", "n1")
    s.leave(s.call("ann", "f.w(a)"), s.call("joe", "f.w(b)"))
    s.leave(s.call("bob", "f.w(c)"), s.call("eve", "f.w(d)"))
    for at in ("f@n1", "f@n2"):
        for one in s.convoys(at):
            one.perform()
    s.leave(s.call("ann", "f.w(e)"), s.call("bob", "f.w(f)"))
    assert s.carried("v-n1/2") == {"f@n3": {"v-n1/0", "v-n1/1"}}
    s.convoys("f@n3")[1].perform()
    assert len(s.convoys("f@n3")) == 2
    s.convoys("f@n3")[0].perform()
    assert len(s.convoys("f@n3")) == 3
    assert good(s)


def test_what_takes_long_holds_up_nobody_but_who_has_to_wait() -> None:
    """protocol.md §2.3: compatible requests never wait for each other."""
    s = Cars()
    s.client("joe", "n1").oneway("f.slow(a)", "slow")
    s.leave(s.call("ann", "f.w(a)"), s.call("bob", "f.w(b)"), s.call("eve", "f.w(c)"))
    assert s.requests()[1:] == [["ann/1"], ["bob/1", "eve/1"]]
    s.end()
    assert (len(s.answered("ann")), len(s.answered("bob")), len(s.answered("eve"))) == (0, 1, 1)
    assert good(s)


def test_what_follows_a_call_that_goes_alone_follows_it() -> None:
    """A2: also what was sent before it, and the calls after it travel together again."""
    s = Cars()
    s.client("joe", "n1").oneway("f.slow(b)", "slow")
    s.leave(*[s.call("ann", f"f.w({key})") for key in "abcd"])
    assert s.requests()[1:] == [["ann/1"], ["ann/2"], ["ann/3", "ann/4"]]
    assert s.carried("v-n1/0") == {f"f@n{i}": {"ann/2"} for i in (1, 2, 3)}
    assert good(s)


def test_a_convoy_has_only_so_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "MOST", 2)
    s = Cars()
    s.leave(*[s.call("ann", "f.add(a)") for _ in range(5)])
    assert s.requests() == [["ann/1", "ann/2"], ["ann/3", "ann/4"], ["ann/5"]]
    assert s.carried("v-n1/1") == {f"f@n{i}": {"v-n1/0"} for i in (1, 2, 3)}
    assert good(s)


def test_too_many_requests_to_look_at_are_taken_for_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "LOOKS", 0)
    s = Cars()
    s.client("joe", "n1").oneway("f.w(a)", "quick")
    s.leave(s.call("ann", "f.w(a)"), s.call("bob", "f.w(b)"), s.call("eve", "f.w(c)"))
    assert s.requests()[1:] == [["ann/1"], ["bob/1", "eve/1"]]
    assert good(s)


def test_a_call_that_brings_a_session_goes_alone() -> None:
    """What it brings comes first (protocol.md §4.1)."""
    s = Cars()
    s.hold("n2->n3")
    s.client("joe", "n2").oneway("g.w", "far")
    s.clients["joe"].move("n1")
    s.leave(s.call("ann", "f.w(a)"), s.call("joe", "f.w(b)"), s.call("eve", "f.w(c)"))
    assert s.requests()[:2] == [["joe/2"], ["ann/1", "eve/1"]]
    assert s.carried("joe/2") == {"g@n3": {"far"}}
    assert good(s)


def test_the_same_call_twice_is_never_in_one_convoy() -> None:
    """Peers would refuse that, and one client could stop a link."""
    s = Cars()
    s.leave(s.call("ann", "f.w(a)"), s.call("ann", "f.w(a)", call=1), s.call("ann", "f.w(b)"), s.call("ann", "f.w(c)"))
    assert s.requests() == [["ann/1"], ["ann/1"], ["ann/2", "ann/3"]]
    s.settle()
    assert sorted(call for call, _, _ in s.answered("ann")) == [1, 2, 3]
    assert good(s)


def test_a_call_that_is_repeated_goes_alone() -> None:
    s = Cars()
    s.leave(s.call("ann", "f.w(a)"), s.call("bob", "f.w(b)"))
    s.leave(s.call("ann", "f.w(a)", call=1), s.call("eve", "f.w(c)"))
    assert s.requests() == [["ann/1", "bob/1"], ["ann/1"], ["eve/1"]]
    s.settle()
    assert [len(s.answered(c)) for c in ("ann", "bob", "eve")] == [1, 1, 1]
    assert good(s)


# back-pressure (protocol.md §8.5)


def test_a_convoy_does_not_pass_a_call_of_its_session_that_waits_for_a_peer() -> None:
    """A2: calls that go alone fill the queue of a peer, and then one that goes alone has to wait."""
    s = Cars(Limits(queued=1))
    s.client("joe", "n1").oneway("f.slow(b)", "slow")
    s.mute("n1->n2", "n1->n3")
    s.leave(s.call("bob", "f.w(b)"), *[s.call("ann", f"f.w({key})") for key in "bcd"])
    assert s.requests() == [["joe/1"], ["bob/1"]]
    assert [waiting.call for waiting in s.com("n1").calls.backlog.lines["ann"]] == [1, 2, 3]
    s.settle()
    assert [sent.call for _, sent in s.heard if isinstance(sent, Sent) and sent.client == "ann"] == [1, 2, 3]
    assert good(s)


def test_who_finds_no_room_to_wait_is_told_and_the_others_go() -> None:
    """Nothing is raised half way."""
    s = Cars(Limits(queued=1, backlog=1))
    s.mute("n1->n2", "n1->n3")
    s.client("joe", "n1").oneway("f.free", "first")
    s.leave(s.call("ann", "f.w(a)"), s.call("bob", "f.w(b)"), s.call("eve", "f.w(c)"))
    assert list(s.com("n1").calls.backlog.lines) == ["ann"]
    assert s.answered("bob") == s.answered("eve") == [(1, [], False)]
    assert s.clients["bob"].received[0].group is None
    assert good(s)


# each is answered by itself


def test_each_call_has_its_own_answer_also_if_another_raises() -> None:
    s = Cars()
    s.leave(s.call("ann", "f.w(a)", CREC), s.call("bob", "f.w(b)", CREC), s.call("ann", "f.w(c)", CREC))
    s.leave(s.call("eve", "f.w(d)", CREC), s.call("bob", "f.w(e)", CREC))
    s.end("ann/2")
    s.end()
    [(one, first, _), (two, second, _)] = s.answered("ann")
    assert (one, two) == (1, 2)
    assert [status for status, _ in first] == ["ok"] * 3 and {b"ann/1 at f@n2"} < {body for _, body in first}
    assert [status for status, _ in second] == ["error"] * 3
    assert s.told("f@n1")[:6] == ["+ann/1", "-ann/1", "+bob/1", "-bob/1", "+ann/2", "-ann/2"]
    assert good(s)


def test_calls_that_cannot_conflict_are_delivered_at_once_and_others_one_after_the_other() -> None:
    s = Cars()
    s.leave(s.call("ann", "f.add(a)"), s.call("bob", "f.add(a)"))
    assert s.told("f@n2") == ["+ann/1", "+bob/1"]
    s.end()
    assert s.told("f@n2") == ["+ann/1", "+bob/1", "-ann/1", "-bob/1"]
    t = Cars()
    t.leave(t.call("ann", "f.w(a)"), t.call("bob", "f.w(a)"))
    assert t.told("f@n2") == []
    assert 1 not in t.com("n2").known.ranges(Replica("f@n2"), Node("n1"))  # who follows waits for the last of them
    t.end()
    assert t.told("f@n2") == ["+ann/1", "-ann/1", "+bob/1", "-bob/1"]
    assert good(s) and good(t)


def test_a_driver_that_could_perform_none_says_so_of_all() -> None:
    s = Cars()
    s.leave(s.call("ann", "f.w(a)", CREC), s.call("bob", "f.w(b)", CREC))
    for at in ("f@n1", "f@n2", "f@n3"):
        [one] = s.convoys(at)
        one.over = True
        s.do(one.node, Completed(one.sid, False, b"cannot be read"))
    assert s.answered("ann") == s.answered("bob") == [(1, [("error", b"cannot be read")] * 3, True)]
    assert good(s)


def test_results_that_cannot_be_read_are_unknown() -> None:
    """A fault of a peer: each call was performed, perhaps."""
    s = Cars()
    s.leave(s.call("ann", "f.w(a)"), s.call("bob", "f.w(b)"))
    spoilt = convoy.pack_rides
    try:
        convoy.pack_rides = lambda results: b"\xc1"
        s.end()
    finally:
        convoy.pack_rides = spoilt
    assert [status for status, _ in s.answered("bob")[0][1]] == ["OutcomeUnknown"] * 2


@pytest.mark.parametrize("body", [b"", b"\xc1", pack_rides([]), pack_rides([("ok", b"")]), pack_args([b"", b""])])
def test_results_that_do_not_fit(body: bytes) -> None:
    assert rides_of(body, 2) == [convoy.GARBLED] * 2


@pytest.mark.parametrize("args", [b"", b"\xc1", pack_args([b"a"]), pack_rides([("ok", b""), ("ok", b"")])])
def test_arguments_that_do_not_fit(args: bytes) -> None:
    one = write(args=args, riders=(rider(1), rider(2)))
    assert args_of(one) == [] and split(one) == []


def test_the_requests_that_its_calls_would_have_been() -> None:
    one = write(args=pack_args([b"a", b"b"]), riders=(rider(1), rider(2, done=1)))
    assert args_of(one) == [b"a", b"b"]
    parts = split(one)
    assert [(str(r.invocation), r.done, r.args, r.riders) for r in parts] == [
        ("ann/1", 0, b"a", ()),
        ("ann/2", 1, b"b", ()),
    ]
    assert split(parts[0]) == [parts[0]]


# deadlines, cancelling, leaving


def test_the_deadline_of_one_is_its_own() -> None:
    s = Cars()
    s.leave(s.call("ann", "f.w(a)", deadline=5.0), s.call("bob", "f.w(b)", deadline=20.0), s.call("eve", "f.w(c)"))
    s.convoys("f@n1")[0].perform()
    s.tick(4.0)
    assert s.answered("ann") == []
    s.tick(2.0)
    assert s.answered("ann") == [(1, [("ok", b"ann/1 at f@n1")], False)]
    assert s.answered("bob") == s.answered("eve") == []
    s.end()
    assert [complete for _, _, complete in s.answered("bob") + s.answered("eve")] == [True, True]
    s.tick(100.0)
    assert [len(s.answered(c)) for c in ("ann", "bob", "eve")] == [1, 1, 1]
    assert good(s)


def test_deadlines_come_one_after_the_other() -> None:
    s = Cars()
    s.leave(s.call("ann", "f.w(a)", deadline=20.0), s.call("bob", "f.w(b)", deadline=5.0))
    for time, told in ((6.0, (0, 1)), (10.0, (0, 1)), (10.0, (1, 1))):
        s.tick(time)
        assert (len(s.answered("ann")), len(s.answered("bob"))) == told
    assert good(s)


def test_who_cancels_hears_no_more_and_the_others_do() -> None:
    """Several replicas perform it, so it is carried through (framework.com.caller)."""
    s = Cars()
    s.leave(s.call("ann", "f.w(a)", deadline=5.0), s.call("bob", "f.w(b)"))
    s.do("n1", Cancel("ann", 1))
    s.tick(10.0)
    s.end()
    assert (s.answered("ann"), len(s.answered("bob"))) == ([], 1)
    assert s.told("f@n3") == ["+ann/1", "-ann/1", "+bob/1", "-bob/1"]
    assert not s.com("n1").calls.sessions["ann"].calls
    s.do("n1", Cancel("bob", 1))  # its answer crossed with this
    assert good(s)


def test_a_client_that_leaves_takes_only_its_own_answer_along() -> None:
    s = Cars()
    s.leave(s.call("ann", "f.w(a)", deadline=5.0), s.call("bob", "f.w(b)", deadline=50.0))
    s.do("n1", Leave("ann"))
    s.clients["ann"].next = 7
    s.clients["ann"].sync("f.w(a)", quorum(2))  # it is back, with another session
    s.tick(10.0)
    s.settle()
    assert [call for call, _, _ in s.answered("ann")] == [7]
    assert len(s.answered("bob")) == 1
    assert good(s)


# copies through other nodes (A1)


def elsewhere(s: Cars, client: str, what: str) -> None:
    """The client has lost its home, and repeats its first call at another node."""
    s.clients[client].node = Node("n2")
    s.clients[client].send(what, "", "sync", quorum(2), call=1)


def test_a_copy_that_was_performed_before_is_skipped_and_answered() -> None:
    s = Cars()
    s.hold("n1->n2", "n1->n3")
    s.leave(s.call("ann", "f.w(a)", CREC), s.call("bob", "f.w(b)", CREC))
    s.hold("n2->n1")
    elsewhere(s, "ann", "f.w(a)")
    s.release()
    s.settle()
    for at in ("f@n1", "f@n2", "f@n3"):
        assert [w for w in s.told(at) if w[0] == "+"] in (["+ann/1", "+bob/1"], ["+bob/1"])
        assert sorted(w for w in s.told(at) if w[0] == "-") == ["-ann/1", "-bob/1"]
        assert s.told(at).count("=ann/1") == 1
    assert {status for _, got, _ in s.answered("ann") for status, _ in got} == {"ok"}
    assert [len(s.answered(c)) for c in ("ann", "bob")] == [2, 1]
    assert good(s)


def test_a_copy_that_comes_while_its_convoy_is_performed_gets_its_answer() -> None:
    s = Cars()
    s.leave(s.call("ann", "f.w(a)"), s.call("bob", "f.w(b)"))
    elsewhere(s, "ann", "f.w(a)")
    assert "=ann/1" not in s.told("f@n2")  # of a call that is not delivered yet nobody is a copy
    s.end("ann/1")
    assert s.told("f@n2") == ["+ann/1", "-ann/1", "=ann/1", "+bob/1", "-bob/1"]
    assert [[status for status, _ in got] for _, got, _ in s.answered("ann")] == [["error"] * 2] * 2
    assert good(s)


@pytest.mark.parametrize("safe", [True, False], ids=["running", "unsafe"])
def test_a_call_that_is_under_way_as_another_copy_is_waited_for(safe: bool) -> None:
    """Calls that do not conflict: the convoy passes the copy, and then it was told that nothing is known of that."""
    s = Cars()
    s.clients["ann"].sync("f.add(a)", CREC)
    copies = [s.instance("ann/1", f"f@n{i}") for i in (1, 2, 3)]
    s.client("eve", "n2")
    s.clients["ann"].node = Node("n2")
    s.clients["bob"].node = Node("n2")
    s.leave(s.call("ann", "f.add(a)", CREC, call=1), s.call("bob", "f.add(b)", CREC), node="n2")
    assert s.requests()[1:] == [["ann/1", "bob/1"]]
    assert s.told("f@n3") == ["=ann/1", "+bob/1"]
    if not safe:
        for copy in copies:
            copy.commit(b"out", safe=False)
    s.end()
    assert s.answered("bob") == []
    for copy in copies:
        copy.safe() if not safe else copy.commit(b"out")
    assert [got for _, got, _ in s.answered("ann")] == [[("ok", b"out")] * 3] * 2
    assert len(s.answered("bob")) == 1
    assert not any(s.com(n).hosts[Replica(f"f@{n}")].answers._late for n in s.nodes)
    assert good(s)


def test_a_convoy_of_copies_alone_performs_nothing() -> None:
    s = Cars()
    for client in ("ann", "bob"):
        s.clients[client].sync("f.w(a)", CREC)
    s.settle()
    for client in ("ann", "bob"):
        s.clients[client].node = Node("n2")
    s.leave(s.call("ann", "f.w(a)", CREC, call=1), s.call("bob", "f.w(a)", CREC, call=1), node="n2")
    assert s.told("f@n1")[-2:] == ["=ann/1", "=bob/1"]
    assert all(c.effect.skips == (0, 1) for c in s.convoys("f@n1"))
    s.end()
    assert {status for _, got, _ in s.answered("ann") for status, _ in got} == {"ok"}
    assert good(s)


def test_nobody_is_told_of_a_convoy_that_is_not_safe() -> None:
    """Neither its callers nor who sends a copy."""
    s = Cars()
    s.leave(s.call("ann", "f.w(a)", CREC), s.call("bob", "f.w(b)", CREC))
    for one in [i for i in s.instances.values() if isinstance(i, Convoy)]:
        one.perform(safe=False)
    elsewhere(s, "ann", "f.w(a)")
    assert s.answered("ann") == s.answered("bob") == []
    for one in [i for i in s.instances.values() if isinstance(i, Convoy)]:
        one.safe()
    assert (len(s.answered("ann")), len(s.answered("bob"))) == (2, 1)
    assert good(s)


# what peers refuse


def rider(no: int, client: str = "ann", done: int = 0, **change: Any) -> Rider:
    return Rider(**{"group": group(no), "invocation": Invocation(client, (no,)), "done": done, **change})


GOOD = (rider(1), rider(2, "bob"))


def convoy_of(*riders: Rider, **change: Any) -> Request:
    return write(
        invocation=Invocation("v", (0,)), kind="async", args=pack_args([b""] * len(riders)), riders=riders, **change
    )


def test_the_plain_one_is_taken() -> None:
    """Guards what follows: only what is changed is wrong."""
    com = nodes()[N1]
    com.step(arrived(convoy_of(*GOOD)), 0.0)
    assert com.hosts[Replica("f@n1")].order.entries


@pytest.mark.parametrize(
    "bad",
    [
        convoy_of(rider(1), rider(1)),
        convoy_of(rider(1, group=group(1, "tran@n3"))),
        convoy_of(rider(1, invocation=Invocation("ann", (1, 2)))),
        convoy_of(rider(1, invocation=Invocation("ann", ()))),
        convoy_of(rider(1, done=2)),
        convoy_of(rider(1, done=-1)),
        convoy_of(rider(1 << 53)),
        msgspec.structs.replace(convoy_of(*GOOD), kind="oneway"),
        msgspec.structs.replace(convoy_of(*GOOD), copies=2),
    ],
    ids=["twice", "origin", "nested", "root", "done", "negative", "number", "oneway", "copies"],
)
def test_riders_that_cannot_be_are_refused_and_nothing_has_changed(bad: Request) -> None:
    com = nodes()[N1]
    before = fingerprint(com)
    with pytest.raises(BadMessage):
        com.step(arrived(bad), 0.0)
    assert fingerprint(com) == before


def test_what_a_node_sends_its_peers_take() -> None:
    """All the ways of being together, through real frames."""
    s = Cars()
    for some in combinations(("ann", "bob", "eve", "ann"), 3):
        s.leave(*[s.call(c, "f.w(k)") for c in some])
    s.settle()
    assert all(complete for c in ("ann", "bob", "eve") for _, _, complete in s.answered(c))
    assert good(s)
