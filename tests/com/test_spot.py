"""A call performed on the spot leaves the com layer as one that went the usual way: Submit, Deliver, Completed.

Two groups of three nodes get the same calls and the same frames. In one of them all calls go the usual way.
"""

from random import Random
from typing import Any

import pytest

from framework.com.core import Com
from framework.com.events import (
    AnyEffect,
    AnyEvent,
    Arrived,
    Completed,
    Deliver,
    Outgoing,
    Received,
    Submit,
    Tick,
    Transmit,
    Wake,
    Writable,
)
from framework.com.messages import Kind
from framework.com.receipt import SREC, majority
from framework.com.spot import Spot
from framework.com.view import Directory, Placement, View
from framework.footprint import Footprint, Relation
from framework.ids import Invocation, Node, ObjectName, Replica, Sid

NAMES = [Node(n) for n in ("n1", "n2", "n3")]
RELATION = Relation([("w", "w"), ("w", "r"), ("k", "k"), ("k", "r")])


def group() -> dict[Node, Com]:
    placements = [Placement("one", RELATION, ["n1"]), Placement("all", RELATION, ["n1", "n2", "n3"])]
    directory = Directory(View(1, tuple(NAMES)), placements)
    return {n: Com(n, directory) for n in NAMES}


def ranges(found: Any) -> Any:
    return {k: (r.low, sorted(r.above), r.holes) for k, r in found.items()}


def state(com: Com) -> dict[str, Any]:
    """All that a com layer knows, but for answers to one-way calls: nobody waits for these."""
    hosts = {}
    for at, host in com.hosts.items():
        past, epoch, replies = host.order.past, host.epoch, host.replies
        kept = {i: (r.status, r.body, r.output, r.context, r.full) for i, r in replies.all() if r.body != b"oneway"}
        hosts[at] = (
            dict(host.arrived), ranges(past.delivered), past._stamps, list(past._latest), past._top, past._most,
            epoch.cid, sorted(epoch.slots), epoch.base_wire, epoch.inherited(), epoch._commits,
            kept, ranges(replies._roots), replies._done,
            host.order.begun, list(host.order.entries), sorted(host.order.ahead.running), host.kept.size,
        )  # fmt: skip
    sessions = {n: (c.no, c.after, c.acted, c.knows(com.known), list(c.calls)) for n, c in com.calls.sessions.items()}
    known = {at: ranges(by_origin) for at, by_origin in com.known._at.items()}
    return {
        "clock": com.clock, "seq": com.calls._seq, "hosts": hosts, "sessions": sessions, "known": known,
        "instances": list(com.instances), "waiting": list(com.waiting), "marks": com.marks._log,
    }  # fmt: skip


class Twins:
    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.spotting, self.usual = group(), group()
        self.now = 0.0
        self.spotted = 0
        self.numbers = dict.fromkeys(("ann", "bob", "eve"), 0)
        self.done = dict.fromkeys(self.numbers, 0)
        self.kinds: dict[tuple[str, int], Kind] = {}
        self.running: list[tuple[Node, Sid, Kind]] = []
        self.wires: dict[tuple[Node, Node], list[bytes]] = {}
        self.woken: set[tuple[Node, Node]] = set()

    def step(self, node: Node, event: AnyEvent) -> list[AnyEffect]:
        """In both groups alike."""
        mine = self.spotting[node].step(event, self.now)
        assert mine == self.usual[node].step(event, self.now)
        self.took(node, mine)
        return mine

    def took(self, node: Node, effects: list[AnyEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self.running.append((node, effect.sid, effect.request.kind))
            elif isinstance(effect, Transmit):
                self.wires.setdefault((node, effect.peer), []).append(effect.data)
            elif isinstance(effect, Wake):
                self.woken.add((node, effect.peer))

    def call(self) -> None:
        client = self.chance.choice(list(self.numbers))
        node = NAMES[0] if client != "eve" else NAMES[1]
        name = self.chance.choice(["one", "one", "one", "all"])
        method = self.chance.choice("wrkf")
        keys = ((self.chance.choice("xyz"), "w"),) if method == "k" else None
        footprint = Footprint(method, keys, method == "r")  # type: ignore[arg-type]
        kind: Kind = self.chance.choice(["sync", "async", "oneway"])  # type: ignore[assignment]
        number = self.numbers[client] = self.numbers[client] + self.chance.choice((1, 1, 1, 3))
        again = self.chance.random() < 0.05
        if again:
            number = self.chance.randint(1, number)
            kind = self.kinds.get((client, number), kind)  # the same call once more
        self.kinds[client, number] = kind
        done = self.chance.randint(0, number) if self.chance.random() < 0.3 else 0
        one = name == "one" or (method == "r" and node == "n1")
        to = (Replica(f"{name}@n1"),) if one else tuple(Replica(f"all@{n}") for n in NAMES)
        receipt = None if kind == "oneway" else SREC if one else majority(3)
        parts = (Outgoing(ObjectName(name), footprint, b"args", to),)
        way = "ucast" if one else "mcast"
        submit = Submit(client, number, kind, way, parts, receipt, done=done)  # type: ignore[arg-type]
        com, host = self.spotting[node], self.spotting[node].hosts.get(to[0])
        invocation = Invocation(client, (number,))
        caller = com.spot.caller(client, invocation, done, host, footprint) if one and host is not None else None
        if caller is None or host is None:
            self.step(node, submit)
            return
        ok, output = self.chance.random() < 0.8, kind != "oneway"
        body = b"oneway" if kind == "oneway" else b"out%d" % number
        spotted = com.spot.did(caller, host, invocation, kind, done, footprint, ok, body, output and ok)
        told = com.spot.told(caller, host, spotted, spotted.request(b"args"), ok, body)
        effects = self.usual[node].step(submit, self.now)
        (deliver,) = [e for e in effects if isinstance(e, Deliver)]  # it did not have to wait
        effects = effects + self.usual[node].step(Completed(deliver.sid, ok, body, output and ok), self.now)
        assert told == effects
        assert any(isinstance(e, Received) for e in told) == (kind != "oneway")
        self.spotted += 1

    def complete(self) -> None:
        if self.running:
            node, sid, kind = self.running.pop(self.chance.randrange(len(self.running)))
            body = b"oneway" if kind == "oneway" else b"late"
            self.step(node, Completed(sid, self.chance.random() < 0.8, body, True))

    def frame(self) -> None:
        if self.woken and self.chance.random() < 0.5:
            node, peer = self.chance.choice(sorted(self.woken))
            self.woken.discard((node, peer))
            self.step(node, Writable(peer))
        elif any(self.wires.values()):
            source, target = self.chance.choice(sorted(w for w, frames in self.wires.items() if frames))
            self.step(target, Arrived(source, self.wires[source, target].pop(0)))

    def tick(self) -> None:
        self.now += 0.05
        for node in NAMES:
            self.step(node, Tick())

    def act(self) -> None:
        act = self.chance.choices((self.call, self.complete, self.frame, self.tick), (6, 4, 8, 1))[0]
        act()
        for node in NAMES:
            assert state(self.spotting[node]) == state(self.usual[node])


def test_on_the_spot_is_as_the_usual_way() -> None:
    spotted = usual = 0
    for seed in range(60):
        twins = Twins(seed)
        for _ in range(150):
            twins.act()
        spotted += twins.spotted
        usual += sum(twins.numbers.values()) - twins.spotted
    assert spotted > 200 and usual > 200


def _always(self: Spot, client: str, invocation: Any, done: int, host: Any, footprint: Any) -> Any:
    """Without a look at what is before it."""
    return self._com.calls.sessions.get(client)


def _forgets_answers(self: Any, *args: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [(Spot, "caller", _always), ("framework.com.replies.Replies", "at_once", _forgets_answers)],
)
def test_a_wrong_one_is_found(owner: Any, name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(owner, str):
        monkeypatch.setattr(f"{owner}.{name}", wrong)
    else:
        monkeypatch.setattr(owner, name, wrong)
    with pytest.raises((AssertionError, ValueError)):
        test_on_the_spot_is_as_the_usual_way()
