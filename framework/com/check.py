"""What a frame from a peer must satisfy before anything of it is taken over.

A frame is judged whole and first; only then is it applied. So a bad one leaves the state as it was. What can only be
judged while applying (a proposal for a request nobody knows) is dropped by itself, and told.
"""

from framework.com.lives import Lives, life_of
from framework.com.messages import (
    Announce,
    Cancel,
    Delivered,
    Dest,
    Frame,
    Known,
    Part,
    Proposal,
    Ready,
    Request,
    Response,
    Waits,
    WireContext,
)
from framework.com.ranges import LONG
from framework.com.view import VOTE, Directory, View
from framework.com.words import (
    Accept,
    AnyWord,
    Ballot,
    Behind,
    Decided,
    Decision,
    Excluded,
    Hello,
    Prepare,
    Promise,
    Refuse,
    Report,
)
from framework.errors import BadMessage
from framework.footprint import Footprint, Relation
from framework.ids import TRAN, Node, ObjectName, Replica, node_of, object_of

AHEAD = 1 << 40  # no clock is ahead of another by so much
MANY = 1 << 53  # no counter ever gets there; keeps arithmetic and wire format far from their ends
CLOCK = 1 << 52  # a clock runs ahead of everything else, so it has to stay below


Arrivals = dict[tuple[Node, Replica], int]


def clock_limit(clock: int) -> int:
    """Clocks and stamps from elsewhere must stay below this."""
    return min(CLOCK, clock + AHEAD)


def is_plain(footprint: Footprint, relation: Relation) -> bool:
    """Is it what its type says, with modes that calls of this object may have, and does it name each key once?"""
    keys = footprint.keys
    if not isinstance(footprint.method, str):
        return False
    if keys is None:
        return True
    modes = relation.modes
    return len({k for k, mode in keys if isinstance(k, str) and mode in modes}) == len(keys)


class _Where:
    """A message of a frame, put in words only when there is something to say about it."""

    __slots__ = ("frame", "index", "limit")

    def __init__(self, frame: Frame, limit: int) -> None:
        self.frame = frame
        self.limit = limit  # of stamps
        self.index = -1

    def __str__(self) -> str:
        kind = type(self.frame.messages[self.index]).__name__
        return f"message {self.index} ({kind}) of frame {self.frame.number} from {self.frame.source}"


class Checker:
    def __init__(self, node: Node, directory: Directory) -> None:
        self.node = node
        self.directory = directory
        self._nodes = frozenset(directory.nodes)
        self._replicas = {r for p in directory.objects.values() for r in p.replicas}
        self._relations = {name: p.relation for name, p in directory.objects.items()}
        self._good: set[tuple[tuple[Replica, ...], tuple[ObjectName, ...]]] = set()  # destinations and parts that fit

    def frame(self, frame: Frame, peer: Node, clock: int) -> None:
        """Raise BadMessage if this frame cannot come from this peer. ``clock`` is our own."""
        if frame.source != peer:
            raise BadMessage(f"frame {frame.number} from {peer}: says it comes from {frame.source!r}")
        if frame.view < 1:
            raise BadMessage(f"frame {frame.number} from {peer}: view {frame.view} is out of range")
        if not 0 <= frame.clock < clock_limit(clock):
            raise BadMessage(f"frame {frame.number} from {peer}: clock {frame.clock} is out of range")

    def messages(self, frame: Frame, arrived: Arrivals | None, clock: int) -> None:
        """The messages of a frame. ``arrived`` has the last number of each origin, if it is next in order."""
        where, source, view = _Where(frame, clock_limit(clock)), frame.source, frame.view
        for message in frame.messages:
            where.index += 1
            if not 0 < message.view <= view:
                raise BadMessage(f"{where}: view {message.view} in a frame of view {frame.view}")
            if type(message) is Request:
                self._request(message, source, where, arrived)
            elif type(message) is Proposal:
                self._from(message.replica, source, where)
                self._proposal(message, where)
            elif type(message) is Response:
                self._from(message.replica, source, where)
                self._context(message.context, where)
                self._context(message.joins, where)
                self._context(message.did, where)
            elif isinstance(message, Waits):
                if message.node != source:
                    raise BadMessage(f"{where}: tells what waits at {message.node!r}")
            elif isinstance(message, Cancel):
                self._addressed(message, source, where)
            elif isinstance(message, Delivered):
                self._delivered(message, source, where)
            elif isinstance(message, Known | Ready):
                self._from(message.replica, source, where)

    def brought(self, frame: Frame, clock: int) -> None:
        """A request that came by another way than from its origin; it may be for any replica."""
        where = _Where(frame, clock_limit(clock))
        where.index = 0
        for m in frame.messages:
            if isinstance(m, Request):
                self._known_origin(m, where)
                self._contents(m, where)

    def _known_origin(self, m: Request, where: _Where) -> None:
        if node_of(m.group.replica) not in self.directory.nodes or m.target not in self._replicas:
            raise BadMessage(f"{where}: {m.group} to {m.target!r}: no such node or replica")

    def _addressed(self, m: Request | Cancel, source: Node, where: _Where) -> None:
        """From the origin of its group, to a replica here."""
        if node_of(m.group.replica) != source:
            raise BadMessage(f"{where}: group {m.group} was not sent by {source}")
        if m.target not in self._replicas or node_of(m.target) != self.node:
            raise BadMessage(f"{where}: target {m.target!r} is not on {self.node}")

    def _request(self, m: Request, source: Node, where: _Where, arrived: Arrivals | None) -> None:
        self._addressed(m, source, where)
        self._contents(m, where)
        target, seq = m.target, 0
        for at, number in m.dests:
            if at == target:
                seq = number
        if m.context:
            self._no_future(m, source, seq, where)
        if arrived is None:
            return
        line = (source, target)
        expected = arrived[line] + 1
        if seq != expected:
            raise BadMessage(f"{where}: request {seq} from {source} to {target}; {expected} is the next expected")
        arrived[line] = seq

    def _contents(self, m: Request, where: _Where) -> None:
        parts, path, target, dests = m.parts, m.invocation.path, m.target, m.dests
        for at, _ in dests:
            if at == target:
                break
        else:
            raise BadMessage(f"{where}: target {m.target} is not among its destinations")
        replicas = self._group(dests, parts, m.number, where)
        if m.copies < 1 or not path or min(path) < 0 or not 0 <= m.done <= path[0]:
            raise BadMessage(f"{where}: copies {m.copies}, done {m.done}, invocation {m.invocation}")
        for ancestor in m.chain:
            if ancestor.object not in self.directory.objects or not 0 < ancestor.length < len(m.invocation.path):
                raise BadMessage(f"{where}: ancestor {ancestor.object!r} of length {ancestor.length}")
            if ancestor.votes and (ancestor is not m.chain[0] or ancestor.object != TRAN or ancestor.votes < 0):
                raise BadMessage(f"{where}: {ancestor.votes} votes for {ancestor.object!r}")
        if parts[0].object == TRAN and parts[0].footprint.method == VOTE:
            if len(path) < 4 or not m.args.isdigit() or len(m.args) > 9:
                raise BadMessage(f"{where}: {m.invocation} is no vote of a part, or does not say of how many")
        self._context(m.context, where)
        if m.did:
            self._context(m.did, where)
            if parts[0].object != TRAN:
                raise BadMessage(f"{where}: {m.group} names what was done, and is no outcome")
        if m.riders:
            self._riders(m, where)
        if m.ordered != (len(replicas) > 1 and self.directory.needs_agreement(m.dests, parts)):
            raise BadMessage(f"{where}: says ordered {m.ordered} of {[str(p.footprint) for p in parts]}")

    def _riders(self, m: Request, where: _Where) -> None:
        """Calls of clients, each once, sent by the origin of the convoy; nobody waits for it but them."""
        name, footprint = m.parts[0]
        if m.chain or m.copies != 1 or m.kind == "oneway" or len(m.parts) > 1 or footprint.readonly or name == TRAN:
            raise BadMessage(f"{where}: {m.group} cannot be a convoy")
        origin = node_of(m.group.replica)
        for group, invocation, done in m.riders:
            path = invocation.path
            if node_of(group.replica) != origin or len(path) != 1 or not 0 <= done <= path[0] < MANY:
                raise BadMessage(f"{where}: {invocation} as {group} cannot travel in {m.group}")
        if len({r.invocation for r in m.riders}) < len(m.riders):
            raise BadMessage(f"{where}: {m.group} has a call twice")

    def _no_future(self, m: Request, source: Node, seq: int, where: _Where) -> None:
        context, target = m.context, m.target
        if len(context) > 1 and len({at for at, _ in context}) < len(context):
            raise BadMessage(f"{where}: its context names a replica twice")
        for at, marks in context:
            for origin, n in marks if at == target else ():
                if origin == source and n >= seq:
                    what = f"request {seq} from {source} to {m.target}"
                    raise BadMessage(f"{where}: {what} follows itself or a later one")

    def _group(
        self, dests: tuple[Dest, ...], parts: tuple[Part, ...], number: int, where: _Where
    ) -> tuple[Replica, ...]:
        """Its destinations."""
        replicas, objects = tuple([d[0] for d in dests]), tuple([p[0] for p in parts])
        if (replicas, objects) not in self._good:
            self._shape(replicas, objects, where)
            if len(self._good) < 4096:
                self._good.add((replicas, objects))
        for name, footprint in parts:
            if not is_plain(footprint, self._relations[name]):
                raise BadMessage(
                    f"{where}: the footprint {footprint} of {name} names a key twice, or has a strange mode"
                )
        in_range = 0 < number < where.limit
        for _, seq in dests:
            in_range = in_range and 0 < seq < MANY
        if not in_range:
            raise BadMessage(f"{where}: number {number} or a sequence number is out of range")
        return replicas

    def _shape(self, replicas: tuple[Replica, ...], objects: tuple[ObjectName, ...], where: _Where) -> None:
        unknown = [r for r in replicas if r not in self._replicas]
        if unknown or not replicas or len(set(replicas)) != len(replicas):
            raise BadMessage(f"{where}: destinations {list(replicas)} name none, an unknown replica or one twice")
        if len(set(objects)) != len(objects) or set(objects) != {object_of(r) for r in replicas}:
            raise BadMessage(f"{where}: parts {list(objects)} do not fit the destinations {list(replicas)}")

    def _proposal(self, m: Proposal, where: _Where) -> None:
        if not 0 < m.number < where.limit:
            raise BadMessage(f"{where}: proposes {m.number}, out of range")
        announce: Announce | None = m.announce
        if announce is not None:
            origin = node_of(m.group.replica)
            if origin == self.node or origin not in self.directory.nodes:
                raise BadMessage(f"{where}: announces {m.group}, which {origin or 'nobody'} cannot have sent")
            replicas = self._group(announce.dests, announce.parts, announce.number, where)
            if m.replica not in replicas or self.node not in [node_of(r) for r in replicas]:
                raise BadMessage(f"{where}: announces a request that does not concern {self.node}")
            if announce.number > m.number:
                raise BadMessage(f"{where}: proposes {m.number}, below the origin stamp {announce.number}")

    def _from(self, replica: Replica, source: Node, where: _Where) -> None:
        if replica not in self._replicas or node_of(replica) != source:
            raise BadMessage(f"{where}: replica {replica!r} is not on {source}")

    def _context(self, context: WireContext, where: _Where) -> None:
        if context:
            why = self.bad_context(context)
            if why:
                raise BadMessage(f"{where}: its context {why}")

    def bad_context(self, context: WireContext) -> str:
        """What is wrong with a context; empty if nothing is."""
        nodes = self._nodes
        for at, marks in context:
            if at not in self._replicas:
                return f"names the unknown replica {at!r}"
            for origin, seq in marks:
                if origin not in nodes or not 0 < seq < MANY:
                    return f"names request {seq} of {origin!r} to {at}"
        return ""

    def _delivered(self, m: Delivered, source: Node, where: _Where) -> None:
        sparse = 0
        for at, origin, ranges in m.marks:
            self._from(at, source, where)
            if origin not in self.directory.nodes:
                raise BadMessage(f"{where}: marks of the unknown origin {origin!r}")
            for first, last in ranges:
                sparse += last - first if first > 1 and last - first < LONG else 0
                endless = first > 1 and last - first >= LONG and last - life_of(last) >= LONG
                if not 0 < first <= last < MANY or sparse > LONG or endless:
                    raise BadMessage(f"{where}: range {first}..{last} of {origin} at {at} is out of range")


class WordChecker:
    """What a word from a peer must satisfy before anything of it is used: what is installed cannot be taken back.

    Words carry decisions that others have made, so most can only be judged for what they say of themselves: that the
    lists fit together, that names are known, that numbers are in range, and that what a decision brings is what it may
    bring.
    """

    def __init__(self, checker: Checker, lives: Lives) -> None:
        self._checker = checker
        self._nodes = checker.directory.nodes
        self._lives = lives

    def word(self, word: AnyWord, peer: Node, clock: int) -> None:
        """Raise BadMessage if this word cannot come from this peer. ``clock`` is our own."""
        where = f"{type(word).__name__} from {peer}"
        if word.source != peer:
            raise BadMessage(f"{where}: says it comes from {word.source!r}")
        if isinstance(word, Hello):
            self._known([n for n, _ in word.heard], where)
        elif isinstance(word, Decided):
            self._decision(word.decision, where, clock)
        elif isinstance(word, Excluded):
            self._view(word.view, where)
        elif not isinstance(word, Behind):
            self._ballot(word.ballot, where)
            if isinstance(word, Prepare):
                self._prepare(word, where)
            elif isinstance(word, Promise):
                self._promise(word, where, clock)
            elif isinstance(word, Refuse):
                self._ballot(word.promised, where)
            elif isinstance(word, Accept):
                self._decision(word.decision, where, clock)

    def _known(self, nodes: list[Node] | tuple[Node, ...], where: str) -> None:
        if strange := [n for n in nodes if n not in self._nodes]:
            raise BadMessage(f"{where}: {', '.join(map(repr, strange))} is no node of the configuration")

    def _ballot(self, ballot: Ballot, where: str) -> None:
        if not 0 <= ballot.round < MANY or (ballot.round and ballot.node not in self._nodes):
            raise BadMessage(f"{where}: the ballot {ballot.round} of {ballot.node!r} is out of range")

    def _prepare(self, word: Prepare, where: str) -> None:
        self._known(word.leaving, where)
        if word.ballot.node != word.source:
            raise BadMessage(f"{where}: the ballot is of {word.ballot.node}")
        view = self._lives.view
        stay = [n for n in view.members if n not in word.leaving]
        if word.version == view.version and len(stay) < view.majority:
            raise BadMessage(f"{where}: without {', '.join(word.leaving)} no majority of view {view.version} is left")

    def _promise(self, word: Promise, where: str, clock: int) -> None:
        self._known([*word.suspects, *(n for n, _, _ in word.outsiders)], where)
        self._report(word.report, where, clock)
        if word.accepted is not None:
            self._ballot(word.accepted[0], where)
            self._decision(word.accepted[1], where, clock)

    def _view(self, view: View, where: str) -> None:
        self._known(view.members, where)
        count = len(view.members)
        if len(set(view.members)) != count or {len(view.since), len(view.incarnations)} - {0, count}:
            raise BadMessage(f"{where}: view {view.version} names a member twice, or its lists do not fit together")
        if not 0 < view.version < MANY or any(not 0 < since <= view.version for since in view.since):
            raise BadMessage(f"{where}: view {view.version} or a life in it is out of range")

    def _decision(self, decision: Decision, where: str, clock: int) -> None:
        view, mine = decision.view, self._lives.view
        self._view(view, where)
        if view.formation != mine.formation:
            raise BadMessage(f"{where}: view {view.version} is of another formation of the group")
        self._known(decision.left, where)
        if any(n not in view.members or view.life(n) != view.version for n in decision.joined):
            raise BadMessage(f"{where}: who joins must be a member from view {view.version} on")
        if any(n in view.members and n not in decision.joined for n in decision.left):
            raise BadMessage(f"{where}: {', '.join(decision.left)} cannot leave and stay")
        self._report(decision.report, where, clock)
        if view.version == mine.version + 1 and not view.formed:
            self._follows(decision, mine, where)

    def _follows(self, decision: Decision, mine: View, where: str) -> None:
        """It comes right after our own view: then we know who was there before."""
        view = decision.view
        stay = [n for n in mine.members if view.life(n) == mine.life(n)]
        if len(stay) < mine.majority:
            raise BadMessage(f"{where}: view {view.version} does not hold a majority of view {mine.version}")
        if unsaid := [n for n in mine.members if n not in stay and n not in decision.left]:
            raise BadMessage(f"{where}: view {view.version} is without {', '.join(unsaid)}, who did not leave")
        if strangers := [r for r in decision.report.requests if node_of(r.group.replica) not in decision.left]:
            raise BadMessage(f"{where}: brings {strangers[0].group}, whose origin does not leave")

    def _report(self, report: Report, where: str, clock: int) -> None:
        for request in report.requests:
            origin = node_of(request.group.replica)
            frame = Frame(origin, max(1, request.view), 1, 0, 0, 0, (request,))
            self._checker.brought(frame, clock)
        for placed in report.proposals:
            if not 0 < placed.number < clock_limit(clock):
                raise BadMessage(f"{where}: the proposal {placed.number} for {placed.group} is out of range")
