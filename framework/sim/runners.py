"""Clients and instances of a random program: they act through the com layer as people's code would."""

from collections.abc import Callable, Mapping

from framework.com.events import AnyEvent, Begin, Cancel, Collect, Decide, Received, Session, Submit
from framework.ids import Node, Sid
from framework.sim.node import SimNode, Stay
from framework.sim.program import Act, Program
from framework.sim.world import World


class Runner:
    """Runs the acts of a script, one after the other, for an instance or a client."""

    def __init__(
        self, world: World, acts: tuple[Act, ...], change: Callable[[], float], done: Callable[[], None]
    ) -> None:
        self.world = world
        self.acts = acts
        self.change = change  # when all acts are sent; says how long that takes
        self.changed = False
        self.done = done
        self.next = 0
        self.number = 1  # of the next call
        self.skipped = 0  # of so many acts the numbers before them are skipped; one may come to its turn twice
        self.later: list[tuple[int, Act]] = []  # asynchronous calls to be collected at the end
        self.waits_for: int | None = None
        self.gone = False  # with its node

    def go(self) -> None:
        if self.gone:
            return
        if self.next < len(self.acts):
            self.world.after(self.acts[self.next].pause, self._act)
        elif not self.changed:
            self.changed = True
            self.world.after(self.change(), self.go)
        elif self.later:
            call, act = self.later.pop(0)
            self.waits_for = call
            self.collect(call, act)
        else:
            self.done()

    def _act(self) -> None:
        if self.gone or self.next >= len(self.acts):  # it was stopped meanwhile
            self.go()
            return
        act = self.acts[self.next]
        if self.next >= self.skipped:
            self.skipped = self.next + 1
            self.number += act.skips
        self.next += 1
        if not self.ready(act):
            return
        call = self.number
        self.number += len(act.parts) or 1
        if act.kind == "sync":
            self.waits_for = call
        elif act.kind == "async" and act.receipt is not None:
            self.later.append((call, act))
        self.submit(call, act)
        if act.kind != "sync":
            self.go()

    def ready(self, act: Act) -> bool:
        """False: something else has been done instead of this act, or before it."""
        return True

    def received(self, call: int) -> None:
        if call == self.waits_for:
            self.waits_for = None
            self.go()

    def failed(self, call: int) -> None:
        """There is no answer and never will be: that is an answer, too."""
        self.later = [(n, act) for n, act in self.later if n != call]
        self.received(call)

    def submit(self, call: int, act: Act) -> None:
        raise NotImplementedError

    def collect(self, call: int, act: Act) -> None:
        raise NotImplementedError


class InstanceRunner(Runner):
    def __init__(
        self, node: SimNode, sid: Sid, acts: tuple[Act, ...], change: Callable[[], float], done: Callable[[], None]
    ) -> None:
        super().__init__(node.world, acts, change, done)
        self.node = node
        self.sid = sid
        self.stopped = False
        self.patience: float | None = None  # it waits for its last call no longer than this
        self.reads = ""  # its invocation, if that is all it does
        self.called = 0  # others, so many times

    @property
    def only_reads(self) -> bool:
        """So far: what it calls may come back and change something."""
        return bool(self.reads) and not self.called

    def submit(self, call: int, act: Act) -> None:
        receipt = act.receipt if act.kind == "sync" else None
        self.called += 1
        self._step(Submit(self.sid, call, act.kind, act.transmission, act.parts, receipt, self._deadline()))
        if self.patience is not None and self.next == len(self.acts) and not self.later:
            self.world.after(self.patience, lambda: self._give_up(call))

    def _give_up(self, call: int) -> None:
        if self.waits_for == call:
            self._step(Cancel(self.sid, call))
            self.received(call)

    def stop(self) -> None:
        """It makes no more calls, waits for none, and changes nothing; unless it has done so already."""
        if self.changed:
            return
        self.stopped = True
        self.acts = self.acts[: self.next]
        self.later.clear()
        if self.waits_for is not None:
            self._give_up(self.waits_for)

    def collect(self, call: int, act: Act) -> None:
        assert act.receipt is not None
        self._step(Collect(self.sid, call, act.receipt, self._deadline()))

    def _deadline(self) -> float | None:
        """Where nodes depart, calls lose those who wait for them, and may then wait for each other: as everywhere, a
        deadline ends that. It is so late that nothing else goes on any more."""
        return self.world.now + 10 * self.world.horizon if self.world.faults.members else None

    def _step(self, event: AnyEvent) -> None:
        if not self.gone:
            self.node.step(event)


class Transactions:
    """The transactions of a client. One is bound to the home where it began; it is aborted when that is lost, and often
    when one of its calls has failed."""

    def __init__(self, client: "ClientRunner") -> None:
        self._client = client
        self._numbers: dict[int, int] = {}
        self._homes: dict[int, Stay] = {}
        self._bad: set[int] = set()
        self._calls: dict[int, int] = {}

    def number(self, act: Act) -> int:
        return self._numbers[act.tran] if act.tran and act.kind != "oneway" else 0

    def is_good(self, act: Act) -> bool:
        return act.decide == "commit" and act.tran not in self._bad

    def ready(self, act: Act) -> bool:
        client = self._client
        if not act.decide:
            if act.tran not in self._numbers:
                self._begin(act)
            if act.tran in self._bad:
                client.go()
                return False
            return True
        waits = [(call, a) for call, a in client.later if a.tran == act.tran]
        if waits:  # it decides when all answers are here
            client.next -= 1
            client.later.remove(waits[0])
            client.waits_for = waits[0][0]
            client.collect(*waits[0])
            return False
        if act.tran not in self._homes:  # it never began
            client.go()
            return False
        return True

    def _begin(self, act: Act) -> None:
        client = self._client
        number = self._numbers[act.tran] = client.number - act.led
        client.number += 1
        node = client.world.nodes[client.home]
        if not node.serves:
            self._bad.add(act.tran)
            return
        self._homes[act.tran] = node.stay
        limit = client.program.chance("limit", client.name, number).choice([60.0, 400.0, 4000.0])
        node.step(Begin(client.name, number, client.world.now + limit))

    def may_send(self, call: int, act: Act, node: SimNode) -> bool:
        self._calls[call] = act.tran
        return node.serves and self._homes.get(act.tran) == node.stay

    def failed(self, call: int, answered: bool = False) -> None:
        """Who has no answer cannot commit; who has got an error may."""
        tran = self._calls.get(call)
        chance = self._client.program.chance("goes on", self._client.name, call)
        if tran is not None and not (answered and chance.random() < 0.3):
            self._bad.add(tran)


class ClientRunner(Runner):
    """A client with a home node; now and then it repeats a call through another node and stays there.

    When its home is lost it goes to another node that is a member and repeats there what was not answered, and what may
    not have left, with the session that it had before each call: as a real client does (framework.orb.home)."""

    def __init__(self, world: World, program: Program, name: str, home: Node, acts: tuple[Act, ...]) -> None:
        super().__init__(world, acts, lambda: 0.0, self._finished)
        self.program = program
        self.name = name
        self.home = home
        self.sessions: dict[Stay, Session] = {}  # its session at each node, the newest that it was given
        self.before: dict[int, dict[Stay, Session]] = {}  # what it had before each call
        self.brought: set[tuple[Stay, str]] = set()  # what it brought where
        self.over = False
        self.answered: set[int] = set()
        self.wanted: set[int] = set()  # calls it wants the answer of
        self.unheard: dict[int, Act] = {}  # calls of which it does not know that they have left
        self.sent: dict[int, Act] = {}  # calls it wants the answer of
        self.homes: dict[int, Stay] = {}  # where each call was submitted last
        self.asked: dict[int, Stay] = {}  # where it waits for the answer of each call
        self.moves = 0  # how often it had to look for a home
        self.moving = False
        self.trans = Transactions(self)
        self.others: Mapping[str, ClientRunner] = {}  # all clients: it may hear from them
        self.heard: dict[int, tuple[Session, ...]] = {}  # what others had told it before each call

    def _finished(self) -> None:
        self.over = True

    def ready(self, act: Act) -> bool:
        return not act.tran or self.trans.ready(act)

    def submit(self, call: int, act: Act) -> None:
        chance = self.program.chance("repeat", self.name, call)
        self._send(call, act)
        wish = self.program.chance("cancel", self.name, call)
        if act.kind != "oneway" and not act.decide and wish.random() < self.program.shape.cancel:
            self.world.after(wish.uniform(0.0, 25.0), lambda: self._cancel(call))
        if act.kind == "sync" and not act.tran and chance.random() < self.program.shape.repeat:
            others = [n for n in self.world.nodes if n != self.home]
            if others:
                other = chance.choice(others)
                self.world.after(chance.uniform(0.0, 15.0), lambda: self._repeat(call, act, other))

    def _repeat(self, call: int, act: Act, other: Node) -> None:
        if self.waits_for == call and self.world.nodes[other].serves:
            self.home = other
            self._send(call, act)

    def _cancel(self, call: int) -> None:
        """It wants no answer any more, whether it waits for it or was to collect it later."""
        if call in self.answered:
            return
        self.answered.add(call)
        self.unheard.pop(call, None)
        self.trans.failed(call)
        if self._there(call):
            self.world.nodes[self.homes[call].node].step(Cancel(self.name, call))
        self.failed(call)

    def _send(self, call: int, act: Act) -> None:
        before = self.before.setdefault(call, dict(self.sessions))
        done = min((n for n in self.wanted if n not in self.answered), default=call)
        if act.receipt is not None:
            self.wanted.add(call)
            self.sent[call] = act
        self.unheard[call] = act
        node = self.world.nodes[self.home]
        if act.tran and not act.decide and not self.trans.may_send(call, act, node):
            self._over(call)
            return
        if self.moving or not node.serves:  # then it waits for its turn
            self._look_for_a_home()
            return
        self.homes[call] = node.stay
        at_once = act.kind == "sync" or self.waits_for == call or self._waits_early(act)
        if at_once:
            self.asked[call] = self.homes[call]
        event: Submit | Decide = Submit(
            self.name,
            call,
            act.kind,
            act.transmission,
            act.parts,
            act.receipt if at_once else None,
            None,
            self._bring(self.homes[call], before) + self._hear(call),
            min(done, call),
            tran=self.trans.number(act),
            votes=act.votes,
        )
        if act.decide:
            commit = self.trans.is_good(act)
            event = Decide(self.name, call, event.tran, commit, "", None, event.sessions, event.done)
        node.step(event)

    def _waits_early(self, act: Act) -> bool:
        """Its receipt goes with it, though the client goes on meanwhile: so calls of one client are under way."""
        return bool(self.program.shape.convoys) and act.kind == "async" and act.receipt is not None and not act.tran

    def _over(self, call: int) -> None:
        """It will never be answered."""
        self.unheard.pop(call, None)
        if call not in self.answered:
            self.answered.add(call)
            self.trans.failed(call)
            self.failed(call)

    def _bring(self, here: Stay, sessions: dict[Stay, Session]) -> tuple[Session, ...]:
        """What its home does not have yet of its sessions elsewhere."""
        new = [s for at, s in sessions.items() if at != here and (here, s.after) not in self.brought]
        self.brought.update((here, s.after) for s in new)
        return tuple(new)

    def _hear(self, call: int) -> tuple[Session, ...]:
        """What another client knows: the call follows that, and so does a repetition of it."""
        if call not in self.heard:
            chance = self.program.chance("heard", self.name, call) if self.program.shape.heard else None
            others = [c for c in self.others.values() if c is not self and c.sessions]
            tells = chance is not None and bool(others) and chance.random() < self.program.shape.heard
            self.heard[call] = tuple(chance.choice(others).sessions.values()) if chance is not None and tells else ()
        return self.heard[call]

    def keep(self, node: SimNode, session: Session) -> None:
        self.sessions[node.stay] = session

    def accepted(self, call: int) -> None:
        """It has left: what has no answer is over with that, whatever becomes of the node."""
        self.unheard.pop(call, None)

    def collect(self, call: int, act: Act) -> None:
        assert act.receipt is not None
        if self._waits_early(act):
            if call in self.answered:
                self.received(call)
            elif not self._there(call):
                self._look_for_a_home()
            return
        if self._there(call):
            self.asked[call] = self.homes[call]
            self.world.nodes[self.homes[call].node].step(Collect(self.name, call, act.receipt))
        else:
            self._look_for_a_home()

    def answer(self, effect: Received) -> None:
        if effect.call not in self.answered:
            self.answered.add(effect.call)
            if not effect.complete or any(r.status != "ok" for r in effect.responses):
                self.trans.failed(effect.call, effect.complete)
            self.received(effect.call)

    # a home is lost

    def _there(self, call: int) -> bool:
        """Is the node still there that it was submitted to?"""
        at = self.homes.get(call)
        return at is not None and self.world.nodes[at.node].serves and self.world.nodes[at.node].stay == at

    def _home_of(self, call: int) -> Node | None:
        at = self.homes.get(call)
        return at.node if at is not None else None

    def _open(self) -> dict[int, Act]:
        """What is to be repeated when a home is lost: not answered, or not known to have left."""
        return self.unheard | {n: act for n, act in self.sent.items() if n not in self.answered}

    def lost(self, node: Node) -> None:
        if self.home == node or any(self._home_of(call) == node for call in self._open()):
            self._look_for_a_home()

    def _look_for_a_home(self) -> None:
        if not self.moving:
            self.moving = True
            self.moves += 1
            chance = self.program.chance("move", self.name, self.moves)
            self.world.after(chance.uniform(1.0, 30.0), lambda: self._move(chance.random()))

    def _move(self, which: float) -> None:
        self.moving = False
        if not self.world.nodes[self.home].serves:
            others = [n.name for n in self.world.nodes.values() if n.serves]
            if not others:
                if not self.over:
                    self._look_for_a_home()
                return
            self.home = others[int(which * len(others))]
        for call, act in sorted(self._open().items()):
            if not self._there(call):
                self._send(call, act)
            elif self.waits_for == call and self.asked.get(call) != self.homes[call]:
                self.collect(call, act)

    def refused(self, call: int) -> None:
        """Nobody is left to perform it: it takes that for an answer, or tries again later."""
        chance = self.program.chance("refused", self.name, call, self.moves)
        self.homes.pop(call, None)
        if chance.random() < 0.5:
            self._look_for_a_home()
            return
        self._over(call)
