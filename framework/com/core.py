"""``Com.step(event, now) -> effects``: the one entrance of the com layer (protocol.md §3 to §12).

The state of a node is here and in what this module owns: links, hosts (one per replica), calls (of instances and
client sessions). A step takes one event, changes the state and says what the driver has to do. It neither blocks nor
reads a clock; ``now`` only moves time-outs. A step that raises has changed nothing.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from framework.com.caller import Instance
from framework.com.calls import Calls, Repeats
from framework.com.check import Checker, WordChecker
from framework.com.context import Known
from framework.com.event import Doubt
from framework.com.events import (
    Again,
    AnyEffect,
    AnyEvent,
    Arrived,
    Begin,
    Cancel,
    Collect,
    Completed,
    Connected,
    Decide,
    Depart,
    Evict,
    Give,
    Heard,
    Leave,
    Safe,
    Session,
    Submit,
    Take,
    Tick,
    Together,
    Transmit,
    Veto,
    Wake,
    Writable,
)
from framework.com.handover import Handover
from framework.com.host import Host
from framework.com.limits import Limits
from framework.com.link import Link, Marks, Timing
from framework.com.lives import Lives, first_of
from framework.com.member import Membership
from framework.com.messages import (
    AnyMessage,
    Delivered,
    Frame,
    Moved,
    Proposal,
    Ready,
    Request,
    Response,
    Waits,
)
from framework.com.messages import Cancel as CancelMessage
from framework.com.messages import Known as KnownMessage
from framework.com.spot import Spot
from framework.com.telling import Dropped
from framework.com.tran import Trans
from framework.com.tran_host import TranHost
from framework.com.view import Directory, Holding, Placement
from framework.com.words import decode
from framework.errors import BadMessage, BadRequest
from framework.ids import TRAN, GroupId, Node, Replica, Sid, node_of, object_of


class Com:
    #: What a replica is made of; a benchmark puts another in its place.
    host_type: type[Host] = Host

    def __init__(
        self,
        node: Node,
        directory: Directory,
        timing: Timing | None = None,
        limits: Limits | None = None,
        told: bool = True,
        holds: Sequence[Holding] = (),
    ) -> None:
        self.node = node
        self.directory = directory
        self.timing = timing or Timing()
        self.lives = Lives(node, directory.view)
        self.view = directory.view.version
        self.out = False  # not a member any more
        self.limits = limits or Limits()
        self.told = told
        self.clock = first_of(self.lives.mine)
        self.known = Known(self.lives.known)
        self.links = {n: self.link(n) for n in directory.view.members if n != node}
        self.trans = Trans(self)
        self.hosts: dict[Replica, Host] = {r: self._host(p, r) for p, r in directory.on(node)}
        self.waiting: dict[GroupId, list[Host]] = {}  # where requests are that are not settled yet
        self.instances: dict[Sid, Instance] = {}
        self.calls = Calls(self)
        self.spot = Spot(self)
        self.marks = Marks(self.links, self.hosts)
        self.member = Membership(self, self.timing.suspect_after)
        self.handover = Handover(self, holds)
        self._crowd = Crowd(self)
        self._local: deque[AnyMessage] = deque()
        self._effects: list[AnyEffect] = []
        self.checker = Checker(node, directory)
        self.word_checker = WordChecker(self.checker, self.lives)
        self._handlers: dict[type[Any], Callable[[Any, float], None]] = {
            Arrived: self._arrived,
            Heard: self._heard,
            Writable: self._writable,
            Submit: self.calls.submit,
            Together: self.calls.convoys.send,
            Completed: self._completed,
            Safe: self._safe,
            Begin: self.trans.begin,
            Decide: self.trans.decide,
            Doubt: self.trans.lasting.doubt,
            Veto: lambda event, now: self.trans.veto(event.tran, event.why),
            Collect: self.calls.collect,
            Tick: self._tick,
            Connected: self._connected,
            Cancel: self.calls.cancel,
            Leave: self.calls.leave,
            Evict: lambda event, now: self.member.evict(event.node),
            Depart: lambda event, now: self.member.evict(self.node),
            Again: Repeats(self).send,
            Give: self.handover.give,
            Take: self.handover.take,
        }
        self._takes: dict[type[Any], Callable[[Any], None]] = {
            Request: self._request,
            Proposal: self._proposal,
            KnownMessage: self._know,
            Response: self.calls.respond,
            Delivered: self._delivered,
            CancelMessage: lambda m: self.hosts[m.target].cancel(m.group),
            Waits: self.trans.deadlock.heard,
            Ready: lambda m: self.handover.ready(m.replica),
        }

    def link(self, peer: Node) -> Link:
        """A new one to another member of the view."""
        view = self.lives.view
        return Link(peer, self.timing, self.lives.mine, view.life(peer) or 1, view.formation)

    def _host(self, placement: Placement, at: Replica) -> Host:
        return TranHost(self, placement, at) if placement.name == TRAN else self.host_type(self, placement, at)

    @property
    def unready(self) -> Mapping[Replica, tuple[Node, ...]]:
        """Replicas here that wait for their state, with the nodes that may have it."""
        return self.handover.unready

    @property
    def crowded(self) -> bool:
        """Clients are to be held back: too much waits at a replica here, or at another one."""
        return self._crowd.is_there

    def step(self, event: AnyEvent, now: float) -> list[AnyEffect]:
        """Take one event; return what is to be done, in order."""
        if self.out:
            return []
        handler = self._handlers.get(type(event))
        if handler is None:
            raise BadRequest(f"{type(event).__name__} is not an event of the com layer")
        try:
            handler(event, now)
            while self._local:
                message = self._local.popleft()
                self._takes[type(message)](message)
            return self._effects
        finally:
            self._effects = []

    def session(self, client: str) -> Session | None:
        """What a client is to keep, to go on elsewhere (protocol.md §8.1)."""
        return self.calls.session(client)

    # for hosts

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def clock_at_least(self, number: int) -> None:
        """A node's clock is never behind a stamp that it has given or delivered (docs/protocol.md, 3.1)."""
        if number > self.clock:
            self.clock = number

    def tell(self, effect: AnyEffect) -> None:
        self._effects.append(effect)

    def post(self, node: Node, message: AnyMessage) -> None:
        if node == self.node:
            self._local.append(message)
            return
        link = self.links.get(node)
        if link is not None and link.push(message):  # else it has departed
            self._effects.append(Wake(node))

    def settled(self, at: Replica, mark: tuple[Node, int]) -> None:
        self.known.ranges(at, mark[0]).add(mark[1])
        self.marks.add(at, mark)

    # instances

    def _completed(self, event: Completed, now: float) -> None:
        instance = self.instances.get(event.sid)
        if instance is None or instance.finished is not None:
            raise BadRequest(f"no instance {event.sid} is being performed at {self.node}")
        if instance.calls and any(c.receipt is not None for c in instance.calls.values()):
            raise BadRequest(f"instance {event.sid} still waits for a receipt; it cannot be complete")
        self.hosts[event.sid.replica].complete(instance, event)

    def _safe(self, event: Safe, now: float) -> None:
        for sid in event.sids:
            instance = self.instances.get(sid)
            if instance is not None and instance.finished is None:
                raise BadRequest(f"instance {sid} is still being performed at {self.node}: it is not safe before that")
        for sid in event.sids:
            if sid.replica in self.hosts and not self.trans.lasting.waits(sid):
                self.hosts[sid.replica].safe(sid)
                self.trans.lasting.safe(sid)

    # links

    def _arrived(self, event: Arrived, now: float) -> None:
        if event.peer == self.node or event.peer not in self.directory.nodes:
            raise BadMessage(f"frame from {event.peer!r}, which is not a member of view {self.view}")
        frame = decode(event.data, event.peer)
        if self.lives.is_foreign(frame):
            self.tell(Dropped(event.peer, f"{type(frame).__name__} of another formation of the group"))
            return
        if not isinstance(frame, Frame):
            self.word_checker.word(frame, event.peer, self.clock)
            self.member.word(frame, now)
            return
        self.checker.frame(frame, event.peer, self.clock)
        if self.member.keeps(frame, event, now):
            return
        link = self.links[event.peer]
        link.check(frame)
        self._check_messages(frame, link.preview(frame))
        self.clock_at_least(frame.clock)
        for ready in link.receive(frame, now, lambda why: self.tell(Dropped(event.peer, why))):
            for message in ready.messages:
                if type(message) is Moved:
                    link.moved = message.view
                    continue
                self._takes[type(message)](message)
                while self._local:
                    local = self._local.popleft()
                    self._takes[type(local)](local)
        if frame.ask:
            for data in link.again(now, frame.ask):
                self.tell(Transmit(event.peer, data))
        if link.hurry or (link.queued and link.open):
            self.tell(Wake(event.peer))

    def again(self, event: Arrived, now: float) -> None:
        """What had to wait for the view to change."""
        try:
            self._arrived(event, now)
        except BadMessage as error:
            self.tell(Dropped(event.peer, str(error)))

    def _check_messages(self, frame: Frame, ready: list[Frame]) -> None:
        """What comes early is examined at once, but for the numbers of its requests."""
        if not ready:
            self.checker.messages(frame, None, self.clock)
        arrived, new = _Arrived(self.hosts), set()
        for each in ready:
            self.checker.messages(each, arrived, self.clock)
            for message in each.messages:
                if type(message) is Request:
                    what = message.target, message.group
                    self.hosts[what[0]].check_announced(message)
                    if what in new:
                        raise BadMessage(f"frame {each.number} from {each.source}: {message.group} comes twice")
                    new.add(what)

    def _heard(self, event: Heard, now: float) -> None:
        self.member.detector.heard(event.peer, now)

    def _writable(self, event: Writable, now: float) -> None:
        link = self._link(event.peer)
        if link is None:
            return  # it has departed
        if link.queued or link.ack_due:
            self._add_marks(link)
        data = link.take(self.node, self.view, self.clock, now)
        if data is not None:
            self.tell(Transmit(event.peer, data))
        if link.queued and link.open:
            self.tell(Wake(event.peer))
        self.calls.relieve()

    def _add_marks(self, link: Link) -> None:
        marks = self.marks.take(link.peer)
        if marks:
            link.push(Delivered(self.view, marks))

    def _link(self, peer: Node) -> Link | None:
        """None: it is no member now."""
        if peer == self.node or peer not in self.directory.nodes:
            raise BadRequest(f"{peer!r} is not a peer of {self.node}")
        return self.links.get(peer)

    def _connected(self, event: Connected, now: float) -> None:
        link = self._link(event.peer)
        if link is None:
            return  # it is not a member; perhaps it wants to be
        for data in link.again(now):
            self.tell(Transmit(event.peer, data))
        self.tell(Wake(event.peer))

    def _tick(self, event: Tick, now: float) -> None:
        self.calls.expire(now)
        for host in self.hosts.values():
            host.kept.prune(self.known)
            host.catch_up()
        self._crowd.tick(now)
        self.member.tick(now)
        self.handover.tick(now)
        self.trans.tick(now)
        for link in self.links.values():
            for data in link.resend(now):
                self.tell(Transmit(link.peer, data))
            if link.wants_tick(now):
                if link.open:  # else they would only pile up
                    self._add_marks(link)
                frame = link.take(self.node, self.view, self.clock, now)
                self.tell(Transmit(link.peer, frame or link.empty(self.node, self.view, self.clock, now)))

    # messages

    def _request(self, m: Request) -> None:
        self.clock_at_least(m.number)
        self.hosts[m.target].arrive(m)

    def _proposal(self, m: Proposal) -> None:
        if m.announce is not None:
            for dest in m.announce.dests:
                host = self.hosts.get(dest.replica)
                if host is not None and m.announce.view >= self.lives.mine:
                    host.announce(m.group, m.announce, dest)
        self.clock_at_least(m.number)
        used, group, at = False, m.group, m.replica
        for host in tuple(self.waiting.get(group, ())):
            if host.replica != at and host.order.propose(group, at, m.number):
                host.flush()
                used = True
        if not used:
            self._useless(m)

    def _know(self, m: KnownMessage) -> None:
        used = False
        for host in tuple(self.waiting.get(m.group, ())):
            if host.replica != m.replica and host.order.know(m.group, m.replica):
                host.flush()
                used = True
        if not used:
            self._useless(m)

    def _useless(self, m: Proposal | KnownMessage) -> None:
        if self.told:
            self.tell(Dropped(node_of(m.replica), f"{type(m).__name__} for {m.group}, which is not known here"))

    def _delivered(self, m: Delivered) -> None:
        for at, origin, ranges in m.marks:
            self.known.ranges(at, origin).add_all(ranges)


class _Arrived(dict[tuple[Node, Replica], int]):
    """Last sequence numbers, read from the hosts and raised by the frames under examination."""

    def __init__(self, hosts: dict[Replica, Host]) -> None:
        super().__init__()
        self._hosts = hosts

    def __missing__(self, key: tuple[Node, Replica]) -> int:
        host = self._hosts.get(key[1])
        return host.arrived[key[0]] if host else 0


PATIENCE: Final = 100  # times delta for which clients wait for a replica that has no state


class Crowd:
    """Whether so much waits that a driver should take no more calls of clients (protocol.md §8.5: nothing grows
    without bound).

    A replica that has no state yet, or catches up, may have more before it than others: these go on, and keep for it
    what they do. When that is too much they hold their clients back, for a while: perhaps its state is about to be
    there. Then they do without it. It comes back by itself and begins anew, with nothing before it.
    """

    def __init__(self, com: "Com") -> None:
        self._com = com
        self._found = False  # at the last tick
        self._since: dict[Node, float] = {}  # nodes without a state that clients have to wait for

    @property
    def is_there(self) -> bool:
        com = self._com
        return self._found or (len(com.waiting) > com.limits.waiting and self._look())

    def tick(self, now: float) -> None:
        self._found = self._look()
        late = self._behind() if self._found else []
        self._since = {node: self._since.get(node, now) for node in late}
        for node, since in self._since.items():
            if now - since > PATIENCE * self._com.timing.delta:
                self._without(node)

    def _look(self) -> bool:
        limits = self._com.limits
        for host in self._com.hosts.values():
            order = host.order
            most = limits.behind if order.closed or order.late.behind else limits.waiting
            if len(order.entries) > most or self._keeps_much(host):
                return True
        return False

    def _keeps_much(self, host: Host) -> bool:
        limits = self._com.limits
        return len(host.kept) > limits.behind or host.kept.size > limits.bytes

    def _behind(self) -> list[Node]:
        names = [host.name for host in self._com.hosts.values() if self._keeps_much(host)]
        return sorted({node_of(r) for r in self._com.lives.pending if object_of(r) in names} - {self._com.node})

    def _without(self, node: Node) -> None:
        try:
            self._com.member.evict(node)
        except BadRequest:
            pass  # too few would be left
