"""Calls of clients that leave together (framework.com.convoy).

A call leaves with all that was read together with it. While earlier ones of its object are under way from here it waits
for their answer, and for no longer than ``gather`` seconds: what comes meanwhile leaves with it. So a lone client never
waits, and many share what a request costs, most of which does not depend on how many calls are in it.

A call travels with others if it goes to all replicas of an object, which has one at this node; if its method changes
the object, is short (short.py) and calls nobody; and if nothing is said about the call that one would have to heed. Of
an object in a store of its own all calls that change it may: one thread performs them, one after the other, and they
share a commit anyway.

Whatever else a client sends does not pass its calls that wait here: they leave first.
"""

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

from framework.com.events import Submit, Together
from framework.com.receipt import Receipt
from framework.declare import declaration
from framework.footprint import Footprint
from framework.ids import ObjectName, replica
from framework.orb.backed.resident import BackedResident
from framework.orb.messages import Call
from framework.orb.own import METHODS
from framework.orb.short import Short

if TYPE_CHECKING:
    from framework.orb.life import Life

MOST_BYTES = 1 << 13  # of arguments: what is large gains nothing
ALL = Short(True)


class Line:
    """Calls of one method of one object, with one receipt."""

    def __init__(self, name: ObjectName, since: float) -> None:
        self.name = name
        self.since = since
        self.submits: list[Submit] = []


class Convoys:
    def __init__(self, life: "Life") -> None:
        self._life = life
        self._name = f"v-{uuid4().hex[:16]}"
        self._lines: dict[tuple[ObjectName, str, Receipt], Line] = {}
        self._kinds: dict[tuple[ObjectName, str], Short | None] = {}  # None: its calls travel alone
        self._brief: dict[ObjectName, frozenset[str]] = {}
        self._gather = life.node.config.serve.gather
        self._timer: asyncio.TimerHandle | None = None
        self._called = False  # it looks in the next turn of the loop
        self.clients: set[str] = set()  # whose calls wait here

    def takes(self, message: Call, submit: Submit) -> bool:
        """True: it leaves with others. OboError: it is refused."""
        act = message.act
        if not self._gather:
            return False
        if len(submit.parts) > 1 or message.again or message.sessions or submit.receipt is None or act.tran is not None:
            return False
        if act.transmission not in (None, "mcast") or submit.receipt.way != "quorum" or act.independent:
            return False
        part = submit.parts[0]
        name, footprint = part.object, part.footprint
        kind = self._kind(name, footprint)
        if kind is None or not kind.ok or len(part.args) > MOST_BYTES or act.parts[0].to or len(part.replicas) < 2:
            return False
        self._life.com.calls.check(submit)
        key = name, footprint.method, submit.receipt
        line = self._lines.get(key)
        if line is None:
            if submit.caller in self.clients:  # its calls leave in their order
                self.flush()
            line = self._lines[key] = Line(name, self._life.now())
        line.submits.append(submit)
        self.clients.add(str(submit.caller))
        return True

    def _kind(self, name: ObjectName, footprint: Footprint) -> Short | None:
        key = name, footprint.method
        if key not in self._kinds:
            self._kinds[key] = self._judge(name, footprint)
        return self._kinds[key]

    def _judge(self, name: ObjectName, footprint: Footprint) -> Short | None:
        life = self._life
        resident = life.residents.get(replica(name, life.node.name))
        if resident is None or footprint.readonly or footprint.method in METHODS:
            return None
        methods = declaration(type(resident.object)).methods
        if isinstance(resident, BackedResident):
            self._brief[name] = frozenset(m.name for m in methods.values() if not m.readonly)
            return ALL
        if resident.durable:
            return None
        shorts = life.stage.shorts
        self._brief[name] = frozenset(m.name for m in methods.values() if shorts[type(resident.object), m].ok)
        short = shorts[type(resident.object), methods[footprint.method]]
        return short if short.ok else None

    def look(self) -> None:
        """All that came together is here: does it leave now?"""
        if not self._lines:
            return
        under_way, due = self._life.com.calls.convoys.under_way, self._life.now() - self._gather
        for line in self._lines.values():
            if line.since <= due or not under_way(line.name):
                self.flush()
                return
        if self._timer is None:
            self._timer = self._life.stage.loop.call_later(self._gather, self._late)

    def _late(self) -> None:
        self._timer = None
        self.look()

    def answered(self) -> None:
        """Something is not under way any more. The com layer may be busy with telling that."""
        if self._lines and not self._called:
            self._called = True
            self._life.stage.loop.call_soon(self._again)

    def _again(self) -> None:
        self._called = False
        self.look()

    def flush(self) -> None:
        """What waits here leaves now."""
        if not self._lines:
            return
        lines, self._lines = self._lines, {}
        self.clients.clear()
        for line in lines.values():
            self._life.feed(Together(self._name, tuple(line.submits), self._brief[line.name]))
