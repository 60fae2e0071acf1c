"""Random objects and random programs: what the seeded world performs.

What an instance does depends on nothing but the seed and its invocation id, so replicas that perform the same request
make the same calls (protocol.md §3.2), and so does a client that repeats one.

Objects have levels and call downwards only: conflicting instances hold their slots while they wait for what they
called, so a cycle of objects would be a deadlock of the program, not of the protocol. The one exception is a call back
to an object of the caller's own chain, which joins the instance that waits for it (protocol.md §6.2).
"""

from collections.abc import Sequence
from random import Random

import msgspec

from framework.com.events import Outgoing
from framework.com.messages import Ancestor, Kind, Request, Transmission
from framework.com.receipt import CREC, DREC, SREC, Receipt, majority, quorum, srec
from framework.footprint import INTENDS_READ, INTENDS_WRITE, READ, WRITE, Footprint, Keys, Mode, Relation
from framework.ids import Invocation, ObjectName, Replica, node_of, replica
from framework.sim.left import Left

BACK = b"back"  # what is called back calls nobody
METHODS = ("a", "b", "c", "d")  # four methods each, as in P0 §6


_footprints = msgspec.msgpack.Decoder(tuple[Footprint, ...])
_footprint = msgspec.msgpack.Decoder(Footprint)
_CARRIES = b"carries"


def carrying(footprint: Footprint) -> bytes:
    """The argument of a call that travels with others: what it touches by itself."""
    return _CARRIES + msgspec.msgpack.encode(footprint)


def carried(args: bytes, footprint: Footprint) -> Footprint:
    """What a call touches by itself, whatever was said of its request."""
    return _footprint.decode(args[len(_CARRIES) :]) if args.startswith(_CARRIES) else footprint


class Shape(msgspec.Struct, frozen=True):
    """What a world looks like. Chosen by the seed, unless given."""

    nodes: int = 3
    least: int = 1  # replicas of an object
    most: int = 3
    objects: int = 4
    levels: int = 3
    conflict: float = 0.5  # share of method pairs that conflict
    keys: int = 3  # 0: no keys
    clients: int = 3
    calls: int = 6  # acts of each client
    ucast: float = 0.3  # share of requests by ucast; the rest by mcast or pcast
    readonly: float = 0.25  # share of methods that only read
    abort: float = 0.08  # share of instances that raise
    oneway: float = 0.15
    later: float = 0.25  # share of asynchronous calls
    back: float = 0.15  # share of instances that call back to their chain
    repeat: float = 0.08  # share of client calls repeated through another node
    cancel: float = 0.0  # share of calls that their caller gives up after a while
    depth: int = 3
    partial: bool = True  # requests that change state may go to some replicas only; then there is no state to hand over
    pace: float = 2.0  # how long a client pauses at most between two calls
    wide: float = 0.6  # how likely an instance makes (another) call
    transactions: float = 0.0  # share of the acts of clients that are in a transaction; 0: nothing is
    lone: float = 0.0  # with transactions: share of the reads of clients outside of them that go to one replica
    lasting: bool = False  # with transactions: objects may be durable
    convoys: float = 0.0  # share of the calls of clients that travel with others, where that may be
    votes: float = 0.0  # share of the transactions of clients that are one call, and decided by its parts
    rare: float = 0.0  # with transactions: how much more there is of what is rare in others
    heard: float = 0.0  # share of the calls of clients that follow what another client knows
    uneven: float = 0.0  # share of the calls that take some replicas much longer than others; links differ by as much
    upward: float = 0.0  # share of the instances that end with a one-way call to any object, also from a call back
    horizon: float = 0.0  # faults of the group happen before this; 0: the usual time


class Kindred(msgspec.Struct, frozen=True):
    """A random object."""

    name: ObjectName
    level: int
    replicas: tuple[Replica, ...]
    relation: Relation
    readonly: frozenset[str]
    keyed: frozenset[str]
    whole: bool  # all its requests go to all replicas: then its methods may be called back


class Act(msgspec.Struct, frozen=True):
    """One transmission of a program."""

    kind: Kind
    transmission: Transmission
    parts: tuple[Outgoing, ...]
    receipt: Receipt | None  # None: one-way, or asynchronous and never collected
    pause: float  # before it
    tran: int = 0  # of a client: which of its transactions it is a part of, from 1 on
    decide: str = ""  # it ends this transaction: "commit" or "abort"
    votes: bool = False  # it is all of its transaction, and its parts decide
    skips: int = 0  # so many numbers before it belong to acts that are not left
    led: int = 0  # its transaction, which it begins, has a number so much lower, as an act that is not left began it

    def __str__(self) -> str:
        if self.decide:
            return f"{self.decide} transaction {self.tran}"
        to = "; ".join(f"{p.object}.{p.footprint} to {', '.join(p.replicas)}" for p in self.parts)
        tran = f" in transaction {self.tran}" if self.tran else ""
        return f"{self.kind} {self.transmission} {to}, {self.receipt or 'no answer wanted'}{tran}"


class Script(msgspec.Struct, frozen=True):
    """Acts; then a change of state; then asynchronous calls are collected; then it commits or aborts."""

    acts: tuple[Act, ...]
    work: float  # time it takes after the last act, and again before it ends
    ok: bool


class Program:
    def __init__(self, seed: str, shape: Shape, left: Left | None = None) -> None:
        self.seed = seed
        self.left = left = left or Left()
        self.shape = _left_of(shape, left)
        chance = Random(f"{seed}/objects")
        self.nodes = [f"n{i + 1}" for i in range(shape.nodes)]
        self.objects = [self._object(chance, i) for i in range(shape.objects)]
        there = [msgspec.structs.replace(o, replicas=self._there(o.replicas)) for o in self.objects]
        self.hosted = [o for o in there if o.replicas and left.has(f"object {o.name}", f"at {', '.join(o.replicas)}")]
        self.by_name = {o.name: o for o in (*self.objects, *self.hosted)}

    def _object(self, chance: Random, i: int) -> Kindred:
        shape = self.shape
        name = ObjectName(f"o{i + 1}")
        level = 1 + i * shape.levels // max(1, shape.objects)
        most = min(shape.most, len(self.nodes))
        where = chance.sample(self.nodes, chance.randint(min(shape.least, most), most))
        readonly = frozenset(m for m in METHODS if chance.random() < shape.readonly)
        pairs = [
            (a, b)
            for n, a in enumerate(METHODS)
            for b in METHODS[n:]
            if not (a in readonly and b in readonly) and chance.random() < shape.conflict
        ]
        keyed = frozenset(m for m in METHODS if shape.keys and chance.random() < 0.7)
        return Kindred(
            name,
            level,
            tuple(replica(name, n) for n in sorted(where)),
            Relation(pairs, self.chance("intentions", name).random() < 0.4),
            readonly,
            keyed,
            chance.random() < 0.5,
        )

    def _there(self, replicas: tuple[Replica, ...]) -> tuple[Replica, ...]:
        return tuple([r for r in replicas if self.left.has(f"node {node_of(r)}")])

    def durable(self, name: ObjectName) -> bool:
        """Is its state on disk? Where nobody crashes, it makes no difference."""
        if self.shape.transactions and not self.shape.lasting:
            return False
        return not self.shape.partial and self.chance("durable", name).random() < 0.4

    def chance(self, *what: object) -> Random:
        return Random("/".join([self.seed, *map(str, what)]))

    # programs

    def client(self, name: str) -> list[Act]:
        chance = self.chance("client", name)
        acts = [self._act(chance, 0, ()) for _ in range(self.shape.calls)]
        acts = [msgspec.structs.replace(a, pause=a.pause * self.shape.pace / 2.0) for a in acts]
        if self.shape.convoys:
            acts = [self._as_others(self.chance("as others", name, i), act) for i, act in enumerate(acts)]
        if self.shape.transactions:
            acts = self._grouped(self.chance("transactions", name), acts)
        if self.shape.rare:
            acts = self._rarer(self.chance("rare", name), acts)
        return self._left(name, acts)

    def _left(self, caller: str, acts: Sequence[Act]) -> list[Act]:
        """Those that are left, with the numbers they had: what an invocation does depends on its number."""
        out: list[Act] = []
        drawn = next_one = 1  # the number that an act was drawn with, and that it would have now
        begins: dict[int, int] = {}  # the number of each transaction
        begun: set[int] = set()  # those of which an act is left
        for i, act in enumerate(acts):
            first = bool(act.tran) and not act.decide and act.tran not in begins
            if first:
                begins[act.tran] = drawn
            number = drawn + first
            is_void = act.decide and act.tran not in begins  # no act was drawn for it
            drawn = number + (0 if is_void else len(act.parts) or 1)
            left = act if act.decide else self._left_of(act)
            if left is None or not (act.decide or self.left.has(f"act {caller} {i + 1}", left)):
                continue
            if is_void:
                out.append(act)
            elif not act.decide or act.tran in begun:
                opens = bool(act.tran) and act.tran not in begun
                before = number - opens
                led = before - begins[act.tran] if opens else 0
                out.append(msgspec.structs.replace(left, skips=before - next_one, led=led))
                next_one = number + (len(left.parts) or 1)
                begun |= {act.tran} if opens else set()
        return out

    def _left_of(self, act: Act) -> Act | None:
        """The act, to the replicas that are left; None if there are none."""
        parts = [p._replace(replicas=self._there(p.replicas)) for p in act.parts if self._hosts(p.object)]
        parts = [p for p in parts if p.replicas]
        if tuple(parts) == act.parts:
            return act
        if not parts:
            return None
        every = [r for p in parts for r in p.replicas]
        receipt = act.receipt
        if receipt is not None and len(every) == 1:
            receipt = SREC
        elif receipt is not None and receipt.way == "quorum":
            receipt = quorum(min(receipt.r, *[len(p.replicas) for p in parts]))
        elif receipt is not None and receipt.source is not None and receipt.source not in every:
            receipt = DREC
        way: Transmission = "mcast" if act.transmission == "pcast" and len(parts) == 1 else act.transmission
        return msgspec.structs.replace(act, transmission=way, parts=tuple(parts), receipt=receipt)

    def _hosts(self, name: ObjectName) -> bool:
        return any(o.name == name for o in self.hosted)

    def _as_others(self, chance: Random, act: Act) -> Act:
        """Most calls that may travel with others are as those of others: one of two methods of an object, at all its
        replicas, with one receipt; and some come in a burst."""
        able = [o for o in self.objects if len(o.replicas) > 1 and len(o.readonly) < len(METHODS)]
        if not able or act.kind == "oneway" or chance.random() >= 0.8:
            return act
        o = able[0] if chance.random() < 0.8 else chance.choice(able)
        methods = [m for m in METHODS if m not in o.readonly]
        footprint = self.footprint(chance, o, methods[0] if chance.random() < 0.8 else methods[-1])
        part = Outgoing(o.name, footprint, msgspec.msgpack.encode(()), o.replicas)
        receipt = self.chance("receipt", o.name).choice([CREC, majority(len(o.replicas)), majority(len(o.replicas))])
        pause = act.pause if chance.random() < 0.5 else chance.choice([0.0, 1.0])
        return Act(act.kind, "mcast", (part,), receipt, pause)

    def _grouped(self, chance: Random, acts: list[Act]) -> list[Act]:
        """Some of them in transactions of a few acts each. All its answers are there before a client decides."""
        out: list[Act] = []
        count = 0
        while acts:
            many = chance.randint(1, 4) if chance.random() < self.shape.transactions else 0
            votes = bool(many and self.shape.votes and acts[0].kind != "oneway" and chance.random() < self.shape.votes)
            many = 1 if votes else many
            taken, acts = acts[: many or 1], acts[many or 1 :]
            if not many and self.shape.lone and chance.random() < self.shape.lone:
                taken = [self._at_one(chance, taken[0])]
            if many:
                count += 1
                pause = min(a.pause for a in taken)
                taken = [msgspec.structs.replace(_part_of(a, count), votes=votes) for a in taken]
                taken[0] = msgspec.structs.replace(taken[0], pause=pause)
                word = "abort" if chance.random() < 0.15 else "commit"
                taken.append(Act("sync", "mcast", (), DREC, chance.uniform(0.0, 2.0), count, word))
            out += taken
        return out

    def _rarer(self, chance: Random, acts: list[Act]) -> list[Act]:
        """More reads at one replica, more answers from one replica, and calls to what was decided on just before."""
        out: list[Act] = []
        for act in acts:
            if not act.decide and chance.random() < self.shape.rare:
                act = self._at_one(chance, act)
                every = [r for p in act.parts for r in p.replicas]
                if act.receipt is not None and len(every) > 1 and chance.random() < 0.5:
                    act = msgspec.structs.replace(act, receipt=srec(chance.choice(every)))
            out.append(act)
            mine = [a for a in out if a.tran == act.tran and not a.decide]
            if act.decide and mine and chance.random() < self.shape.rare:
                again = chance.choice(mine)
                if self.shape.uneven and chance.random() < 0.6:  # or something else, which may overtake it
                    again = self._act(chance, 0, ())
                kind: Kind = "sync" if again in mine else again.kind
                out.append(msgspec.structs.replace(again, kind=kind, tran=0, votes=False, pause=0.0))
        return out

    def _at_one(self, chance: Random, act: Act) -> Act:
        """A read at one replica, as clients read who say nothing else."""
        part = act.parts[0]
        if len(act.parts) > 1 or not part.footprint.readonly or self.by_name[part.object].whole:
            return act
        if (
            self.shape.heard
        ):  # reads precede calls of their own client alone (P1 §4), and sessions do not tell them apart
            return act
        parts = (part._replace(replicas=(chance.choice(part.replicas),)),)
        receipt = SREC if act.receipt is not None else None
        return msgspec.structs.replace(act, transmission="ucast", parts=parts, receipt=receipt)

    def script(self, request: Request, at: Kindred, footprint: Footprint) -> Script:
        """What the instance that performs this request does."""
        script = self.script_of(request.invocation, request.args, request.chain, at, footprint)
        if script.acts:
            acts = tuple(self._left(str(request.invocation), script.acts))
            script = msgspec.structs.replace(script, acts=acts)
        return script

    def script_of(
        self, invocation: Invocation, args: bytes, above: Sequence[Ancestor], at: Kindred, footprint: Footprint
    ) -> Script:
        if args == BACK:
            return Script(self._upward(invocation, at), 0.5, True)
        waiting = _footprints.decode(args) if not args.startswith(_CARRIES) else ()
        chance = self.chance("call", invocation, at.name)
        acts: list[Act] = []
        depth = len(invocation.path)
        while depth < self.shape.depth and len(acts) < 4 and chance.random() < self.shape.wide:
            if not any(o.level > at.level for o in self.objects):
                break
            last = chance.random() < 0.3 and not any(a.kind == "async" for a in acts)
            acts.append(self._act(chance, at.level, (*waiting, footprint), last))
            if last:
                break
        if chance.random() < self.shape.back:
            chain = above[len(above) - len(waiting) :]
            waiting = waiting[len(waiting) - len(chain) :]  # one that is performed once more has nobody who waits
            back = self._back(chance, at, list(zip(chain, waiting, strict=True)))
            if back is not None:
                acts.append(back)
        work, ok = chance.uniform(0.0, 3.0), chance.random() >= self.shape.abort
        return Script((*acts, *self._upward(invocation, at)), work, ok)

    def _upward(self, invocation: Invocation, at: Kindred) -> tuple[Act, ...]:
        """A one-way call to any object, also one above: nobody waits for it, so it makes no circle."""
        chance = self.chance("upward", invocation, at.name)
        if len(invocation.path) > self.shape.depth or chance.random() >= self.shape.upward:
            return ()
        o = chance.choice(self.objects)
        part = Outgoing(o.name, self.footprint(chance, o), msgspec.msgpack.encode(()), o.replicas)
        return (Act("oneway", "mcast" if len(o.replicas) > 1 else "ucast", (part,), None, chance.uniform(0.0, 2.0)),)

    def lingers(self, invocation: Invocation, at: Replica) -> float:
        """How much longer this replica takes for a call than others."""
        chance = self.chance("lingers", invocation, at) if self.shape.uneven else None
        return chance.uniform(5.0, 120.0) if chance is not None and chance.random() < self.shape.uneven else 0.0

    def _back(self, chance: Random, at: Kindred, chain: Sequence[tuple[Ancestor, Footprint]]) -> Act | None:
        """A call back to an object that waits for this instance, where that one runs, with the footprint of that one:
        with another one it could wait for a compatible instance that waits for the caller, a deadlock of programs."""
        able = [(a, f) for a, f in chain if a.object != at.name and self.by_name[a.object].whole]
        if not able:
            return None
        ancestor, footprint = chance.choice(able)
        part = Outgoing(ancestor.object, footprint, BACK, ancestor.replicas)
        receipt = chance.choice([CREC, DREC, majority(len(ancestor.replicas))])
        return Act("sync", "mcast", (part,), receipt, chance.uniform(0.0, 1.0))

    def _act(self, chance: Random, above: int, waiting: tuple[Footprint, ...], last: bool = False) -> Act:
        """``waiting``: footprints of the instances that wait for this act, each for the whole of what it called.
        They travel as the argument: only these may be called back. Who calls asynchronously waits, too, but later:
        in the meantime it must not wait for anything else, so that act must be its ``last`` and its only one."""
        below = [o for o in self.objects if o.level > above]
        transmission: Transmission = "ucast"
        if chance.random() >= self.shape.ucast:
            transmission = "pcast" if len(below) > 1 and chance.random() < 0.4 else "mcast"
        count = min(len(below), chance.randint(2, 3)) if transmission == "pcast" else 1
        parts = tuple(self._part(chance, o, transmission) for o in chance.sample(below, count))
        if transmission == "ucast" and len(parts[0].replicas) > 1:
            transmission = "mcast"
        roll = chance.random()
        kind: Kind = "sync"
        if last and chance.random() < 0.5:
            kind = "async"
        elif roll < self.shape.oneway:
            kind = "oneway"
        elif roll < self.shape.oneway + self.shape.later:
            kind = "async"
        if kind == "oneway" or (kind == "async" and not last and chance.random() < 0.3):
            wait = None
        else:
            wait = self._receipt(chance, parts)
        waits = kind == "sync" or (kind == "async" and last)
        whole = waits and (wait == CREC or (wait is not None and len(parts) == 1))
        args = msgspec.msgpack.encode(waiting if whole else ())
        parts = tuple(p._replace(args=args) for p in parts)
        return Act(kind, transmission, parts, wait, chance.uniform(0.0, 2.0))

    def _part(self, chance: Random, o: Kindred, transmission: Transmission) -> Outgoing:
        where = o.replicas
        if not o.whole and not self.shape.transactions:  # a transaction is isolated if all replicas know of it
            if transmission == "ucast":
                where = (chance.choice(o.replicas),)
            elif chance.random() < 0.3:
                where = tuple(sorted(chance.sample(o.replicas, chance.randint(1, len(o.replicas)))))
        footprint = self.footprint(chance, o)
        if not self.shape.partial and 1 < len(where) < len(o.replicas):
            where = where[:1]
        if not self.shape.partial and not footprint.readonly:
            where = o.replicas
        return Outgoing(o.name, footprint, b"", where)

    def _receipt(self, chance: Random, parts: tuple[Outgoing, ...]) -> Receipt:
        least = min(len(p.replicas) for p in parts)
        every = [r for p in parts for r in p.replicas]
        if len(every) == 1:
            return SREC
        return chance.choice([CREC, CREC, DREC, quorum(least), quorum(least // 2 + 1), srec(chance.choice(every))])

    def footprint(self, chance: Random, o: Kindred, method: str = "") -> Footprint:
        method = method or chance.choice(METHODS)
        readonly = method in o.readonly
        keys: Keys | None = None
        if method in o.keyed and chance.random() < 0.85:
            some = chance.sample(range(self.shape.keys), chance.randint(1, min(2, self.shape.keys)))
            keys = tuple((f"k{k}", self._mode(chance, readonly, o.relation)) for k in sorted(some))
        return Footprint(method, keys, readonly)

    def _mode(self, chance: Random, readonly: bool, relation: Relation) -> Mode:
        drawn = chance.random()
        modes: tuple[Mode, Mode] = (READ, WRITE)
        if INTENDS_WRITE in relation.modes and int(drawn * 1000) % 2:
            modes = (INTENDS_READ, INTENDS_WRITE)
        return modes[0] if readonly or drawn < 0.2 else modes[1]


def _part_of(act: Act, tran: int) -> Act:
    """One-way calls are transactions of their own."""
    if act.kind == "oneway":
        return act
    return msgspec.structs.replace(act, pause=min(act.pause, 4.0), tran=tran, receipt=act.receipt or CREC)


def _left_of(shape: Shape, left: Left) -> Shape:
    """Without the habits of callers that are not left."""
    habits = ("cancel", "repeat", "abort")
    gone = [name for name in habits if getattr(shape, name) and not left.has(f"habit {name}")]
    return msgspec.structs.replace(shape, **dict.fromkeys(gone, 0.0))


#: With transactions, worlds from this seed on are small, and nothing in them takes as long as anything else.
SMALL = 30_000_000


def _small(chance: Random, changing: bool) -> dict[str, object]:
    """Few objects, clients and calls, so that what there is meets; and it meets in unusual orders, because links differ
    by far in their delay, replicas in the time that a call takes, and a client may know what another one knows."""
    drawn: dict[str, object] = {
        "nodes": chance.choice([3, 3, 4]) if changing else chance.choice([2, 2, 3]),
        "least": 2,
        "most": 3,
        "objects": 1,
        "levels": 1,
        "conflict": chance.choice([0.25, 0.4, 0.5]),
        "keys": 0,
        "clients": chance.choice([2, 3, 4]),
        "calls": chance.choice([5, 8]),
        "pace": chance.choice([10.0, 40.0]) if changing else chance.choice([1.0, 1.0, 10.0]),
        "transactions": chance.choice([0.4, 0.6]),
        "rare": 0.8,
        "lone": 0.0,
        "votes": chance.choice([0.0, 0.0, 0.5]),
        "oneway": chance.choice([0.15, 0.4]),
        "later": chance.choice([0.0, 0.3]),
        "wide": 0.0,
        "back": 0.0,
        "abort": chance.choice([0.02, 0.1]),
        "repeat": 0.0,
        "cancel": 0.0,
        "uneven": chance.choice([0.1, 0.3, 0.5]),
    }
    kind = chance.choice(["flat", "heard", "lone", "deep"])
    if kind == "heard":
        drawn |= {"heard": chance.choice([0.4, 0.8])}
    elif kind == "lone":  # much is read, and at one replica
        drawn |= {"readonly": 0.5, "rare": 0.9, "lone": chance.choice([0.5, 0.9]), "later": 0.4}
        drawn |= {"conflict": chance.choice([0.5, 0.8])}
    elif kind == "deep":
        drawn |= {"objects": chance.choice([2, 3]), "levels": 2, "wide": chance.choice([0.4, 0.7]), "conflict": 0.5}
        drawn |= {"back": chance.choice([0.0, 0.6]), "upward": chance.choice([0.0, 0.3]), "keys": chance.choice([0, 2])}
        drawn |= {"repeat": chance.choice([0.0, 0.2]), "cancel": chance.choice([0.0, 0.2])}
    return drawn | {"horizon": 400.0} if changing else drawn


def random_shape(seed: str, fixed: dict[str, object], changing: bool = False) -> Shape:
    """A world for this seed; what is given stays as it is. ``changing``: one whose group changes, with more replicas
    and clients that take longer."""
    chance = Random(f"{seed}/shape")
    drawn: dict[str, object] = {
        "nodes": chance.randint(2, 5),
        "objects": chance.randint(2, 6),
        "levels": chance.randint(2, 3),
        "conflict": chance.choice([0.0, 0.1, 0.3, 0.5, 0.8, 1.0]),
        "keys": chance.choice([0, 2, 4]),
        "clients": chance.randint(2, 5),
        "calls": chance.randint(3, 8),
        "ucast": chance.choice([0.0, 0.3, 0.7]),
        "oneway": chance.choice([0.0, 0.2, 0.4]),
        "later": chance.choice([0.0, 0.2, 0.5]),
        "wide": chance.choice([0.3, 0.5, 0.7]),
        "back": chance.choice([0.1, 0.6]),
        "repeat": chance.choice([0.0, 0.1, 0.6]),
        "cancel": chance.choice([0.0, 0.2, 0.6]),
    }
    if changing:
        more = Random(f"{seed}/changing")
        pace, calls = more.choice([(5.0, 30), (20.0, 24), (60.0, 16), (150.0, 10)])  # to last as long as the faults
        drawn |= {"nodes": more.randint(3, 5), "least": 2, "most": 5, "calls": calls, "pace": pace, "partial": False}
    if fixed.get("transactions"):
        drawn |= {"transactions": Random(f"{seed}/transactions").choice([0.1, 0.4, 0.8]), "partial": False}
        if int(seed) >= 1000:  # those before are as they were when tests began to name them
            drawn |= {"lone": Random(f"{seed}/lone").choice([0.0, 0.5, 0.9])}
            drawn |= {"votes": Random(f"{seed}/votes").choice([0.0, 0.5, 0.9])}
        drawn |= {"lasting": Random(f"{seed}/lasting").random() < 0.4}
        if int(seed) >= 20_000_000:  # those before are as they were when tests began to name them
            more = Random(f"{seed}/rare")
            drawn |= {"rare": more.choice([0.2, 0.5, 0.8]), "transactions": more.choice([0.4, 0.8])}
            drawn |= {"oneway": more.choice([0.1, 0.3, 0.5]), "objects": more.randint(2, 4), "levels": 2}
            drawn |= {"conflict": more.choice([0.5, 0.8, 1.0]), "keys": more.choice([0, 2]), "wide": 0.7}
            drawn |= {
                "clients": more.randint(3, 6),
                "pace": drawn.get("pace", 2.0) if changing else more.choice([0.5, 2.0]),
            }
        if int(seed) >= SMALL:
            drawn |= _small(Random(f"{seed}/small"), changing)
        fixed = {name: value for name, value in fixed.items() if name != "transactions"}
    if fixed.get("convoys"):
        more = Random(f"{seed}/convoys")
        drawn |= {
            "convoys": more.choice([0.7, 1.0]),
            "clients": more.choice([6, 12, 20]),
            "wide": more.choice([0.0, 0.2]),
        }
        drawn |= {"back": more.choice([0.0, 0.1]), "ucast": more.choice([0.0, 0.2]), "objects": more.randint(1, 3)}
        drawn |= {"later": more.choice([0.0, 0.2, 0.7]), "oneway": more.choice([0.0, 0.1])}
        drawn |= {"repeat": more.choice([0.0, 0.2, 0.9]), "readonly": more.choice([0.0, 0.25])}
        fixed = {name: value for name, value in fixed.items() if name != "convoys"}
    drawn.update(fixed)
    return msgspec.convert(drawn, Shape)
