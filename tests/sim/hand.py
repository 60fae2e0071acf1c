"""Traces made by hand, for tests of the oracle."""

from typing import Any

import pytest

from framework.footprint import Footprint
from framework.sim.oracle import judge
from framework.sim.verdict import Verdict
from framework.trace.files import Trace
from framework.trace.record import Header, Placed, Record

NODES = ("n1", "n2", "n3")
CONFLICTS = (("w", "w"), ("r", "w"))  # c conflicts with nothing


class Sender:
    """A client's session or an instance, as far as records tell."""

    def __init__(self, sid: str, invocation: str, client: str = "") -> None:
        self.sid, self.invocation, self.client = sid, invocation, client
        self.node = sid.partition("@")[2]
        self.calls = self.no = 0
        self.replica = ""


class Sent:
    def __init__(self, group: str, parts: dict[str, Footprint], invocations: dict[str, str]) -> None:
        self.group, self.parts, self.invocations = group, parts, invocations


class Hand:
    """A run, record by record, in the order in which it is written down here."""

    def __init__(self, nodes: tuple[str, ...] = NODES, durable: bool = False) -> None:
        self.objects = {
            name: Placed(tuple(f"{name}@{n}" for n in NODES), CONFLICTS, durable) for name in ("f", "g", "o")
        }  # fmt: skip
        self.traces: dict[str, Trace] = {}  # of the life that each node has now
        self.earlier: list[Trace] = []
        self.views: dict[str, int] = {}
        self.clock = 0
        self.at = 0.0
        for n in nodes:
            self.join(n, 1, *nodes)

    def write(self, node: str, **fields: Any) -> None:
        records = self.traces[node].records
        records.append(Record(i=len(records) + 1, node=node, at=self.at, view=self.views[node], **fields))

    # lives: members are told as n1, or n1#4 for the one that joined in view 4

    def join(self, node: str, version: int, *members: str) -> None:
        """A new life of a node begins, with this view."""
        if node in self.traces:
            self.earlier.append(self.traces[node])
        names, since = told(members)
        head = Header(node=node, view=version, members=names, since=since, life=version, objects=self.objects)
        self.traces[node] = Trace(head, [])
        self.views[node] = version

    def install(self, version: int, *members: str, at: str = "") -> None:
        """At all members that were there before, or at those that are named."""
        names, since = told(members)
        for node in at.split() or [n for n, s in zip(names, since, strict=True) if s < version]:
            self.views[node] = version
            self.write(node, event="install", members=names, since=since)

    def snapshot(self, at: str, to: str) -> str:
        node = at.partition("@")[2]
        self.write(node, event="snapshot", replica=at, to=to)
        trace = self.traces[node]
        return f"{at}#{trace.header.life}#{len(trace.records)}"

    def adopt(self, at: str, ticket: str) -> None:
        self.write(at.partition("@")[2], event="adopt", replica=at, ticket=ticket)

    def hand_over(self, donor: str, at: str) -> None:
        self.adopt(at, self.snapshot(donor, at.partition("@")[2]))

    # calls

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def client(self, name: str, node: str = "n3") -> Sender:
        return Sender(f"{self.tick()}:tran@{node}", f"{name}/", name)

    def send(self, who: Sender, what: str, kind: str = "oneway", call: int = 0, **more: Any) -> Sent:
        """``what`` as "f.w@n1,n2 g.c@n1": several parts are a pcast."""
        parts, dests = {}, []
        for text in what.split():
            name, method, nodes = text.replace("@", ".").split(".")
            parts[name] = Footprint(method, None, method == "r")
            dests += [(f"{name}@{n}", 1) for n in nodes.split(",")]
        call = call or who.calls + 1
        who.calls = max(who.calls, call + len(parts) - 1)
        stem = who.invocation if who.client else who.invocation + "."
        group = f"{who.sid}:{who.no}"
        self.write(
            who.node, event="send", sid=who.sid, no=who.no, group=group, invocation=f"{stem}{call}", client=who.client,
            kind=kind, transmission="pcast" if len(parts) > 1 else "mcast", parts=tuple(parts.items()),
            dests=tuple(dests), **more,
        )  # fmt: skip
        who.no += 1
        return Sent(group, parts, {name: f"{stem}{call + j}" for j, name in enumerate(parts)})

    def arrive(self, m: Sent, at: str) -> None:
        name, _, node = at.partition("@")
        self.write(node, event="arrive", replica=at, group=m.group, invocation=m.invocations[name])

    def deliver(self, m: Sent, at: str, clock: int = 0, **change: Any) -> Sender:
        name, _, node = at.partition("@")
        instance = Sender(f"{clock or self.tick()}:{at}", m.invocations[name])
        instance.replica = at
        fields = {"group": m.group, "invocation": m.invocations[name], "footprint": m.parts[name], **change}
        self.write(node, event="deliver", replica=at, sid=instance.sid, **fields)
        return instance

    def end(self, instance: Sender, committed: bool = True) -> None:
        self.write(
            instance.node, event="end", replica=instance.replica, sid=instance.sid, invocation=instance.invocation,
            committed=committed,
        )  # fmt: skip

    def perform(self, m: Sent, *at: str, **change: Any) -> None:
        for replica in at:
            self.end(self.deliver(m, replica, **change))

    def receive(self, who: Sender, m: Sent, *replicas: str, **more: Any) -> None:
        self.write(
            who.node, event="receive", sid=who.sid, client=who.client, group=m.group,
            received=tuple((r, "ok") for r in replicas), **more,
        )  # fmt: skip

    def duplicate(self, m: Sent, at: str) -> None:
        name, _, node = at.partition("@")
        self.write(node, event="duplicate", replica=at, group=m.group, invocation=m.invocations[name])

    def state(self, at: str, digest: str) -> None:
        self.write(at.partition("@")[2], event="state", replica=at, digest=digest)

    def stop(self, *still_open: str, at: tuple[str, ...] = NODES) -> None:
        for node in at:
            self.write(node, event="stop", open=still_open if node == "n1" else ())

    def judge(self, **options: Any) -> Verdict:
        return judge([*self.earlier, *self.traces.values()], **options)

    def blamed(self, **options: Any) -> list[str]:
        return [v.rule for v in self.judge(**options).violations]

    def in_order(self, at: str, right: bool, *messages: Sent) -> None:
        """Perform these at a replica: as they are named, or the other way round."""
        for m in messages if right else reversed(messages):
            self.perform(m, at)


def told(members: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    parts = [m.partition("#") for m in members]
    return tuple(name for name, _, _ in parts), tuple(int(life or 1) for _, _, life in parts)


both = pytest.mark.parametrize("right", [True, False], ids=["fine", "violated"])
