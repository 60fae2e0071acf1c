"""Clients and instances of a random program: they act through the com layer as people's code would."""

from collections.abc import Callable

from framework.com.events import (
    Accepted,
    AnyEvent,
    Cancel,
    Collect,
    Completed,
    Deliver,
    Received,
    Session,
    Stop,
    Submit,
)
from framework.com.view import Placement
from framework.ids import Node, Replica, Sid, object_of
from framework.sim.ledger import Ledger
from framework.sim.program import Act, Program
from framework.sim.world import Performer, SimNode, World


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
        self.later: list[tuple[int, Act]] = []  # asynchronous calls to be collected at the end
        self.waits_for: int | None = None

    def go(self) -> None:
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
        if self.next >= len(self.acts):  # it was stopped meanwhile
            self.go()
            return
        act = self.acts[self.next]
        self.next += 1
        call = self.number
        self.number += len(act.parts)
        if act.kind == "sync":
            self.waits_for = call
        elif act.kind == "async" and act.receipt is not None:
            self.later.append((call, act))
        self.submit(call, act)
        if act.kind != "sync":
            self.go()

    def received(self, call: int) -> None:
        if call == self.waits_for:
            self.waits_for = None
            self.go()

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

    def submit(self, call: int, act: Act) -> None:
        receipt = act.receipt if act.kind == "sync" else None
        self._step(Submit(self.sid, call, act.kind, act.transmission, act.parts, receipt))
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
        self._step(Collect(self.sid, call, act.receipt))

    def _step(self, event: AnyEvent) -> None:
        self.node.step(event)


class ClientRunner(Runner):
    """A client with a home node; now and then it repeats a call through another node and stays there."""

    def __init__(self, actors: "Actors", name: str, home: Node, acts: tuple[Act, ...]) -> None:
        super().__init__(actors.world, acts, lambda: 0.0, self._finished)
        self.actors = actors
        self.name = name
        self.home = home
        self.sessions: dict[Node, Session] = {}  # its session at each node, the newest that it was given
        self.before: dict[int, dict[Node, Session]] = {}  # what it had before each call
        self.brought: set[tuple[Node, str]] = set()  # what it brought where
        self.over = False
        self.answered: set[int] = set()
        self.wanted: set[int] = set()  # calls it wants the answer of
        self.homes: dict[int, Node] = {}  # where each call was submitted last

    def _finished(self) -> None:
        self.over = True

    def submit(self, call: int, act: Act) -> None:
        chance = self.actors.program.chance("repeat", self.name, call)
        self._send(call, act)
        wish = self.actors.program.chance("cancel", self.name, call)
        if act.kind != "oneway" and wish.random() < self.actors.program.shape.cancel:
            self.world.after(wish.uniform(0.0, 25.0), lambda: self._cancel(call))
        if act.kind == "sync" and chance.random() < self.actors.program.shape.repeat:
            others = [n for n in self.world.nodes if n != self.home]
            if others:
                other = chance.choice(others)
                self.world.after(chance.uniform(0.0, 15.0), lambda: self._repeat(call, act, other))

    def _repeat(self, call: int, act: Act, other: Node) -> None:
        if self.waits_for == call:
            self.home = other
            self._send(call, act)

    def _cancel(self, call: int) -> None:
        """It wants no answer any more, whether it waits for it or was to collect it later."""
        if call in self.answered:
            return
        self.answered.add(call)
        self.later = [(n, act) for n, act in self.later if n != call]
        self.world.nodes[self.homes[call]].step(Cancel(self.name, call))
        self.received(call)

    def _send(self, call: int, act: Act) -> None:
        receipt = act.receipt if act.kind == "sync" else None
        self.homes[call] = self.home
        done = min((n for n in self.wanted if n not in self.answered), default=call)
        if act.receipt is not None:
            self.wanted.add(call)
        sessions = self._bring(self.before.setdefault(call, dict(self.sessions)))
        event = Submit(self.name, call, act.kind, act.transmission, act.parts, receipt, None, sessions, done)
        self.world.nodes[self.home].step(event)

    def _bring(self, sessions: dict[Node, Session]) -> tuple[Session, ...]:
        """What its home does not have yet of its sessions elsewhere."""
        new = [s for n, s in sessions.items() if n != self.home and (self.home, s.after) not in self.brought]
        self.brought.update((self.home, s.after) for s in new)
        return tuple(new)

    def keep(self, node: Node, session: Session) -> None:
        self.sessions[node] = session

    def collect(self, call: int, act: Act) -> None:
        assert act.receipt is not None
        self.world.nodes[self.homes[call]].step(Collect(self.name, call, act.receipt))

    def answer(self, effect: Received) -> None:
        if effect.call not in self.answered:
            self.answered.add(effect.call)
            self.received(effect.call)


class Actors(Performer):
    """The performer of a random program."""

    def __init__(self, world: World, program: Program) -> None:
        self.world = world
        self.program = program
        self.ledgers: dict[Replica, Ledger] = {r: Ledger(o.relation) for o in program.objects for r in o.replicas}
        self.running: dict[Sid, InstanceRunner] = {}
        self.clients: dict[str, ClientRunner] = {}
        world.performer = self
        chance = program.chance("homes")
        for i in range(program.shape.clients):
            name = f"c{i + 1}"
            home = chance.choice(list(world.nodes))
            client = ClientRunner(self, name, home, tuple(program.client(name)))
            self.clients[name] = client
            world.after(chance.uniform(0.0, 10.0), client.go)

    def deliver(self, node: SimNode, effect: Deliver) -> None:
        if effect.cancelled:
            node.step(Completed(effect.sid, False, b"cancelled"))
            return
        request = effect.request
        at = self.program.by_name[node.com.hosts[effect.replica].name]
        script = self.program.script(request, at, effect.footprint)

        def change() -> float:
            if script.ok and not runner.stopped:
                self.ledgers[effect.replica].commit(str(request.invocation), effect.footprint)
            return script.work

        def done() -> None:
            self.world.after(script.work, lambda: self._complete(node, effect, script.ok and not runner.stopped))

        runner = InstanceRunner(node, effect.sid, script.acts, change, done)
        chance = self.program.chance("patience", request.invocation)
        # replicas do not lose patience at the same moment: what they do then must not differ
        if _performed_once(effect) and chance.random() < self.program.shape.cancel / 2:
            runner.patience = chance.uniform(0.0, 15.0)
        self.running[effect.sid] = runner
        runner.go()

    def _complete(self, node: SimNode, effect: Deliver, ok: bool) -> None:
        del self.running[effect.sid]
        output = not effect.request.group.no % 2
        node.step(Completed(effect.sid, ok, b"done" if output else b"", output))

    def stopped(self, node: SimNode, effect: Stop) -> None:
        """Most look whether they are still wanted, some run to their end."""
        runner = self.running.get(effect.sid)
        if runner is not None and self.program.chance("looks", effect.sid).random() < 0.8:
            runner.stop()

    def accepted(self, node: SimNode, effect: Accepted) -> None:
        self._keep(node, effect.client)

    def _keep(self, node: SimNode, client: str) -> None:
        session = node.com.session(client)
        assert session is not None
        self.clients[client].keep(node.name, session)

    def received(self, node: SimNode, effect: Received) -> None:
        if effect.client:
            self._keep(node, effect.client)
            self.clients[effect.client].answer(effect)
        else:
            runner = self.running.get(effect.caller)
            if runner is not None:  # else it was stopped, and this crossed with its cancelling
                runner.received(effect.call)

    def busy(self) -> bool:
        return bool(self.running) or not all(c.over for c in self.clients.values())

    def states(self, node: Node) -> list[tuple[str, str, int]]:
        return [(r, s.digest(), s.performed) for r, s in self.ledgers.items() if r.endswith(f"@{node}")]


def _performed_once(effect: Deliver) -> bool:
    name = object_of(effect.replica)
    return sum(object_of(d.replica) == name for d in effect.request.dests) == 1


def placements(program: Program) -> list[Placement]:
    return [Placement(o.name, o.relation, [r.partition("@")[2] for r in o.replicas]) for o in program.objects]
