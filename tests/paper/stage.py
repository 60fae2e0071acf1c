"""A stage for the figures of the papers: a few nodes, and a test that decides by hand what happens when.

Links can be held back and released, instances last until the test ends them, and nothing else is in between: the nodes
are real ``Com`` objects, their frames are real bytes, their traces go to the oracle. A figure then reads like this::

    stage = Stage("i j k")
    stage.object("f", "j k", "write/write")
    t = stage.client("T", "i")
    stage.hold("i->k")
    t.oneway("f.write@j,k", "m1")
    assert stage.delivered("f@k") == []

Requests are written ``object.method(keys)@nodes``; without nodes they go to all replicas, with several parts
("car.book@t hotel.book@u") they are one pcast. Messages have names, and everything is asked for by name.
"""

import re
from collections import deque
from collections.abc import Callable
from typing import Any

from framework.com.core import Com
from framework.com.events import (
    Accepted,
    AnyEffect,
    AnyEvent,
    Arrived,
    Collect,
    Completed,
    Connected,
    Deliver,
    Outgoing,
    Received,
    Safe,
    Session,
    Settle,
    Submit,
    Tick,
    Transmit,
    Wake,
    Writable,
)
from framework.com.limits import Limits
from framework.com.link import Timing
from framework.com.messages import AnyMessage, Kind, Request, Transmission, WireContext, decode
from framework.com.receipt import Receipt
from framework.com.telling import Sent
from framework.com.view import Directory, Placement, View, tran
from framework.footprint import WRITE, Footprint, Keys, Relation
from framework.ids import TRAN, Invocation, Node, ObjectName, Replica, Sid, object_of, replica
from framework.sim.ledger import Ledger
from framework.sim.oracle import Oracle
from framework.sim.verdict import Verdict
from framework.trace.files import Trace
from framework.trace.recorder import Recorder, header
from framework.trace.still_open import still_open

TIMING = Timing(delta=10.0, ask_after=5.0, resend_after=20.0)
Pair = tuple[Node, Node]
_CALL = re.compile(r"(\w+)\.(\w+)(?:\(([^)]*)\))?(?:@([\w,]+))?\Z")
_LINK = re.compile(r"(\w+|\*)(<?->)(\w+|\*)\Z")


class Listening(Com):
    """A com object that also shows which messages it posts."""

    def __init__(self, *args: Any, **named: Any) -> None:
        self.posted: list[AnyMessage] = []
        super().__init__(*args, **named)

    def post(self, node: Node, message: AnyMessage) -> None:
        self.posted.append(message)
        super().post(node, message)


class Actor:
    """Who sends: a client's session (a transaction) or an instance. It numbers its calls from 1."""

    def __init__(self, stage: "Stage", node: Node, who: Sid | str) -> None:
        self.stage = stage
        self.node = node
        self.who = who
        self.next = 1
        self.received: list[Received] = []

    def oneway(self, what: str, name: str = "") -> Sent:
        return self.send(what, name, "oneway")

    def later(self, what: str, name: str = "") -> Sent:
        """Asynchronous: the responses can be collected."""
        return self.send(what, name, "async")

    def sync(self, what: str, receipt: Receipt, name: str = "") -> Sent:
        return self.send(what, name, "sync", receipt)

    def send(
        self, what: str, name: str = "", kind: Kind = "oneway", receipt: Receipt | None = None, **more: Any
    ) -> Sent:
        return self.stage.submit(self.node, self.event(what, kind, receipt, **more), name.split())

    def event(self, what: str, kind: Kind, receipt: Receipt | None, **more: Any) -> Submit:
        """The next call of this actor. ``more``: ``data`` for arguments, and fields of Submit."""
        data = more.pop("data", b"")
        parts = tuple(part._replace(args=data) for part in self.stage.parts(what))
        call = more.pop("call", self.next)
        self.next = max(self.next, call + len(parts))
        way: Transmission = "pcast" if len(parts) > 1 else "mcast" if len(parts[0].replicas) > 1 else "ucast"
        return Submit(self.who, call, kind, way, parts, receipt, **self._more(call, more))

    def collect(self, call: int, receipt: Receipt) -> None:
        self.stage.do(self.node, Collect(self.who, call, receipt))

    def answers(self, call: int) -> list[str]:
        """From whom the receipt of this call received, the most significant one last."""
        found = [r for r in self.received if r.call == call]
        return [response.replica for response in found[-1].responses] if found else []

    def _more(self, call: int, more: dict[str, Any]) -> dict[str, Any]:
        return more


class Client(Actor):
    """A client. When it moves to another node it brings its session context along (protocol.md §8.1)."""

    session: Session | None = None  # the newest that it was given
    before: dict[int, Session | None]  # what it had before each call: brought along when it repeats that
    moved = False

    def move(self, node: str) -> None:
        self.node = Node(node)
        self.moved = True

    def _more(self, call: int, more: dict[str, Any]) -> dict[str, Any]:
        session = self.__dict__.setdefault("before", {}).setdefault(call, self.session)
        if self.moved and session is not None:
            more = {"sessions": (session,), **more}
        self.moved = False
        return more


class Instance(Actor):
    """A method being performed; it lasts until the test lets it commit or abort."""

    def __init__(self, stage: "Stage", node: Node, effect: Deliver) -> None:
        super().__init__(stage, node, effect.sid)
        self.sid = effect.sid
        self.cid = effect.cid
        self.replica = effect.replica
        self.effect = effect
        self.over = False

    def commit(self, output: bytes = b"", safe: bool = True) -> None:
        """``safe`` False: nobody is told of it before ``safe()``."""
        self.over = True
        self.stage.ledgers[self.replica].commit(str(self.effect.request.invocation), self.effect.footprint)
        self.stage.do(self.node, Completed(self.sid, True, output, bool(output), safe))

    def safe(self) -> None:
        self.stage.do(self.node, Safe((self.sid,)))

    def abort(self) -> None:
        self.over = True
        self.stage.do(self.node, Completed(self.sid, False))


class Player:
    """A node on the stage: its com layer and its trace."""

    def __init__(self, node: Node, directory: Directory, timing: Timing, limits: Limits | None) -> None:
        self.com = Listening(node, directory, timing, limits)
        self.trace = Trace(header(node, directory), [])
        self.recorder = Recorder(node, directory.view.version, self.trace.records.append)


class Stage:
    def __init__(
        self, nodes: str, timing: Timing = TIMING, limits: Limits | None = None, formation: bytes = b""
    ) -> None:
        self.nodes = [Node(n) for n in nodes.split()]
        self.formation = formation
        self.timing = timing
        self.limits = limits
        self.now = 0.0
        self.placements: dict[str, Placement] = {}
        self.reads: dict[str, set[str]] = {}
        self.at_once: set[str] = set()
        self.ledgers: dict[Replica, Ledger] = {}
        self.instances: dict[Sid, Instance] = {}
        self.clients: dict[str, Client] = {}
        self.heard: list[tuple[Node, AnyEffect]] = []  # all effects, as they came
        self.watch: Callable[[str, Node, Any], None] = lambda what, node, detail: None  # "effect", "frame", "held"
        self._names: dict[Invocation, str] = {}
        self._sent: dict[str, Sent] = {}
        self._players: dict[Node, Player] = {}
        self._agenda: deque[Callable[[], None]] = deque()
        self._woken: set[Pair] = set()
        self._held: dict[Pair, list[bytes]] = {}
        self._muted: set[Pair] = set()
        self._last: dict[Pair, bytes] = {}

    # who is there

    def object(self, name: str, nodes: str, conflicts: str = "", reads: str = "", at_once: bool = False) -> None:
        """``conflicts`` as "write/write write/read"; ``reads`` are the methods that do not change the state.

        ``at_once``: instances on its replicas commit as soon as they start; for places where they do not matter."""
        assert not self._players, "objects first, then what happens"
        relation = Relation([(a, b) for a, _, b in (pair.partition("/") for pair in conflicts.split())])
        self.placements[name] = Placement(name, relation, nodes.split())
        self.reads[name] = set(reads.split())
        if at_once:
            self.at_once.add(name)
        for at in self.placements[name].replicas:
            self.ledgers[at] = Ledger(relation)

    def transactions(self) -> None:
        """What instances do to several objects is atomic: every node has a ``tran``."""
        placement = self.placements[TRAN] = tran(self.nodes)
        self.ledgers |= {at: Ledger(placement.relation) for at in placement.replicas}

    def client(self, name: str, node: str) -> Client:
        client = self.clients[name] = Client(self, Node(node), name)
        return client

    def com(self, node: str) -> Listening:
        return self._player(Node(node)).com

    def _player(self, node: Node) -> Player:
        if not self._players:
            directory = Directory(View(1, tuple(self.nodes), formation=self.formation), list(self.placements.values()))
            self._players = {n: Player(n, directory, self.timing, self.limits) for n in self.nodes}
        return self._players[node]

    # requests

    def parts(self, what: str) -> tuple[Outgoing, ...]:
        return tuple(self._part(text) for text in re.findall(r"[^\s(]+(?:\([^)]*\)\S*)?", what))

    def _part(self, text: str) -> Outgoing:
        found = _CALL.match(text)
        assert found, f"not a request: {text}"
        name, method, inside, nodes = found.groups()
        keys: Keys | None = None
        if inside is not None:
            pairs = (key.strip().partition(":") for key in inside.split(","))
            keys = tuple((key, "r" if mode == "r" else WRITE) for key, _, mode in pairs)
        footprint = Footprint(method, keys, method in self.reads[name])
        everywhere = self.placements[name].replicas
        to = tuple(replica(name, n) for n in nodes.split(",")) if nodes else everywhere
        return Outgoing(ObjectName(name), footprint, b"", to)

    def submit(self, node: Node, event: Submit, names: list[str]) -> Sent:
        before = len(self.heard)
        self.do(node, event)
        sent = next(e for n, e in self.heard[before:] if isinstance(e, Sent) and n == node and e.call == event.call)
        client, path = sent.invocation
        for j in range(len(sent.parts)):
            invocation = Invocation(client, (*path[:-1], path[-1] + j))
            name = names[j] if names else self._names.get(invocation, str(invocation))
            self._names[invocation] = name
            self._sent[name] = sent
        return sent

    # events and effects

    def do(self, node: str, event: AnyEvent) -> None:
        """Give a node an event and let everything run that is not held back."""
        self._step(Node(node), event)
        self._run()

    def _run(self) -> None:
        while self._agenda:
            self._agenda.popleft()()

    def _step(self, node: Node, event: AnyEvent) -> None:
        player = self._player(node)
        for effect in player.com.step(event, self.now):
            self.heard.append((node, effect))
            player.recorder.effect(effect, self.now)
            self.watch("effect", node, effect)
            self._carry_out(node, effect)

    def _carry_out(self, node: Node, effect: AnyEffect) -> None:
        if isinstance(effect, Wake):
            self._wake((node, effect.peer))
        elif isinstance(effect, Transmit):
            self._transmit((node, effect.peer), effect.data)
        elif isinstance(effect, Deliver) and object_of(effect.replica) == TRAN:  # it performs that by itself
            self.ledgers[effect.replica].commit(str(effect.request.invocation), effect.footprint)
        elif isinstance(effect, Settle) and not effect.commit:
            undone = str(self.instances[effect.sid].effect.request.invocation)
            self.ledgers[effect.replica] = self.ledgers[effect.replica].without(lambda done: done == undone)
        elif isinstance(effect, Deliver):
            instance = self.instances[effect.sid] = Instance(self, node, effect)
            if effect.replica.partition("@")[0] in self.at_once:
                self._agenda.append(instance.commit)
        elif isinstance(effect, Received):
            self._actor(effect).received.append(effect)
            if effect.client and effect.group is not None:
                self.clients[effect.client].session = self.com(node).session(effect.client)
        elif isinstance(effect, Accepted) and effect.client in self.clients:
            self.clients[effect.client].session = self.com(node).session(effect.client)

    def _actor(self, effect: Received) -> Actor:
        return self.clients[effect.client] if effect.client else self.instances[effect.caller]

    # links

    def _wake(self, pair: Pair) -> None:
        if pair not in self._woken:
            self._woken.add(pair)
            if pair not in self._muted:
                self._agenda.append(lambda: self._writable(pair))

    def _writable(self, pair: Pair) -> None:
        self._woken.discard(pair)
        self._step(pair[0], Writable(pair[1]))

    def _transmit(self, pair: Pair, data: bytes) -> None:
        if pair in self._held:
            self._held[pair].append(data)
            self.watch("held", pair[1], decode(data, pair[0]))
        else:
            self._agenda.append(lambda: self._arrive(pair, data))

    def _arrive(self, pair: Pair, data: bytes) -> None:
        self._last[pair] = data
        self.watch("frame", pair[1], decode(data, pair[0]))
        self._step(pair[1], Arrived(pair[0], data))

    def _pairs(self, links: tuple[str, ...]) -> list[Pair]:
        out: list[Pair] = []
        for link in links:
            found = _LINK.match(link)
            assert found, f"not a link: {link}"
            a, arrow, b = found.groups()
            for x in self.nodes if a == "*" else [Node(a)]:
                for y in self.nodes if b == "*" else [Node(b)]:
                    if x != y:
                        out += [(x, y), (y, x)] if arrow == "<->" else [(x, y)]
        return out

    def hold(self, *links: str) -> None:
        """Frames on these links ("i->k", "i<->k", "*->k") stay on their way."""
        for pair in self._pairs(links):
            self._held.setdefault(pair, [])

    def mute(self, *links: str) -> None:
        """What is to be sent on these links does not even leave the node."""
        self._muted.update(self._pairs(links))

    def release(self, *links: str) -> None:
        """What was held or muted on these links (on all, if none is named) goes on, in its order."""
        for pair in self._pairs(links) if links else [*self._held, *sorted(self._muted)]:
            for data in self._held.pop(pair, []):
                self._transmit(pair, data)
            if pair in self._muted:
                self._muted.discard(pair)
                if pair in self._woken:
                    self._agenda.append(lambda pair=pair: self._writable(pair))  # type: ignore[misc]
        self._run()

    def lose(self, link: str) -> int:
        """Frames that were held on this link are lost; later ones go through. How many?"""
        return sum(len(self._held.pop(pair, [])) for pair in self._pairs((link,)))

    def repeat(self, link: str) -> None:
        """The last frame that arrived on this link arrives once more."""
        for pair in self._pairs((link,)):
            self._arrive(pair, self._last[pair])
        self._run()

    def reconnect(self, link: str) -> None:
        for a, b in self._pairs((link,)):
            self.do(a, Connected(b))

    def tick(self, time: float, *nodes: str) -> None:
        """Time passes, and the nodes (all, if none is named) notice."""
        self.now += time
        for node in nodes or tuple(self.nodes):
            self._step(Node(node), Tick())
        self._run()

    # what happened

    def name(self, invocation: Invocation) -> str:
        return self._names.get(invocation, str(invocation))

    def delivered(self, at: str) -> list[str]:
        """The messages delivered at a replica, in order."""
        done = (e for _, e in self.heard if isinstance(e, Deliver) and e.replica == at)
        return [self.name(e.request.invocation) for e in done]

    def waiting(self, at: str) -> list[str]:
        """The messages that are at a replica but not delivered."""
        entries = self.com(at.partition("@")[2]).hosts[Replica(at)].order.entries.values()
        waiting = (e.request for e in entries if e.request is not None and not e.started and not e.void)
        return sorted(self.name(r.invocation) for r in waiting)

    def instance(self, name: str, at: str) -> Instance:
        """The instance that performs (or performed) this message at a replica."""
        for instance in self.instances.values():
            if instance.replica == at and self.name(instance.effect.request.invocation) == name:
                return instance
        raise AssertionError(f"{name} is not delivered at {at}; delivered: {self.delivered(at)}")

    def request(self, name: str, at: str = "") -> Request:
        """A message as it was sent (to this replica)."""
        posted = (m for p in self._players.values() for m in p.com.posted if isinstance(m, Request))
        return next(m for m in posted if self.name(m.invocation) == name and at in ("", m.target))

    def sent(self, name: str) -> Sent:
        return self._sent[name]

    def carried(self, name: str) -> dict[str, set[str]]:
        """The context of a message: per destination the messages that must come first."""
        return self.names_in(self.request(name).context)

    def knows(self, instance: Instance) -> dict[str, set[str]]:
        """What must come before the next message of an instance: the papers' V of the instance."""
        com = self.com(instance.node)
        return self.names_in(com.instances[instance.sid].knows(com.known))

    def committed(self, at: str) -> dict[str, set[str]]:
        """What instances of a replica committed since its last conflict: V of the object, not inherited yet."""
        return self.names_in(self.com(at.partition("@")[2]).hosts[Replica(at)].epoch.context.wire())

    def base(self, at: str) -> dict[str, set[str]]:
        """What every instance that starts at a replica now inherits."""
        return self.names_in(self.com(at.partition("@")[2]).hosts[Replica(at)].epoch.base.wire())

    def names_in(self, context: WireContext) -> dict[str, set[str]]:
        """A context with names instead of numbers."""
        where: dict[tuple[str, Node, int], str] = {}
        for player in self._players.values():
            for m in player.com.posted:
                if isinstance(m, Request):
                    seq = next(d.seq for d in m.dests if d.replica == m.target)
                    where[(m.target, player.com.node, seq)] = self.name(m.invocation)
        return {str(at): {where[(at, *mark)] for mark in marks} for at, marks in context}

    # the end

    def finish(self) -> Verdict:
        """Let go of everything, let every instance commit, and judge the run by the definitions."""
        self.settle()
        for player in self._players.values():
            for at, ledger in self.ledgers.items():
                if at.partition("@")[2] == player.com.node:
                    player.recorder.state(self.now, at, ledger.digest(), ledger.performed)
            player.recorder.stop(self.now, tuple(still_open(player.com)))
        return self.oracle().verdict

    def settle(self) -> None:
        self.release()
        for _ in range(50):
            for instance in list(self.instances.values()):
                if not instance.over and not self._waits(instance):
                    instance.commit()
            self.tick(self.timing.resend_after)
            if not any(still_open(p.com) for p in self._players.values()):
                break

    def _waits(self, instance: Instance) -> bool:
        calls = self.com(instance.node).instances[instance.sid].calls.values()
        return any(call.receipt is not None for call in calls)

    def traces(self) -> list[Trace]:
        return [p.trace for p in self._players.values()]

    def oracle(self) -> Oracle:
        """What the definitions say about the run so far."""
        oracle = Oracle(self.traces())
        oracle.judge()
        return oracle

    def precedes(self, first: str, second: str) -> bool:
        """Does ``first`` → ``second`` hold, by protocol.md §2.2 and not by what the protocol does?"""
        groups = self.oracle().groups
        one, two = groups[str(self.sent(first).group)], groups[str(self.sent(second).group)]
        names = {invocation: name for name, invocation in one.invocations.items()}
        part = next(names[i] for i in names if self._text_name(i) == first)
        return bool(two.before & one.bits[part])

    def _text_name(self, invocation: str) -> str:
        return next((name for i, name in self._names.items() if str(i) == invocation), invocation)

    def concurrent(self, first: str, second: str) -> bool:
        return not self.precedes(first, second) and not self.precedes(second, first)
