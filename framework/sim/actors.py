"""The performer of a random program: instances that act, clients, and the states of replicas."""

from collections.abc import Collection

from framework.com.convoy import split
from framework.com.events import (
    Accepted,
    Collect,
    Completed,
    Decide,
    Deliver,
    Outgoing,
    Received,
    Ride,
    Settle,
    Stop,
    Submit,
)
from framework.com.view import OUTCOMES, Placement, tran
from framework.errors import OboError
from framework.footprint import Footprint
from framework.ids import TRAN, Invocation, Node, Replica, Sid, node_of, object_of, replica
from framework.sim.ledger import Ledger
from framework.sim.node import SimNode
from framework.sim.performer import Performer, State
from framework.sim.program import Program, carried
from framework.sim.runners import ClientRunner, InstanceRunner
from framework.sim.world import World


class Actors(Performer):
    """The performer of a random program."""

    def __init__(self, world: World, program: Program) -> None:
        self.world = world
        self.program = program
        self.ledgers: dict[Replica, Ledger] = {r: Ledger(o.relation) for o in program.hosted for r in o.replicas}
        if program.shape.transactions:
            self.ledgers |= {replica(TRAN, n): Ledger(OUTCOMES) for n in world.nodes}
        self.running: dict[Sid, InstanceRunner] = {}
        self.performed: dict[Sid, str] = {}  # instances that may have to be taken back
        self.clients: dict[str, ClientRunner] = {}
        world.performer = self
        chance, homes = program.chance("homes"), world.drawn[: 2 if program.shape.convoys else None]
        for i in range(program.shape.clients):
            name = f"c{i + 1}"
            home, start = chance.choice(homes), chance.uniform(0.0, 10.0)
            home = home if home in world.nodes else next(iter(world.nodes))
            if program.left.has(f"client {name}", f"at {home}"):
                client = ClientRunner(world, program, name, home, tuple(program.client(name)))
                client.others = self.clients
                self.clients[name] = client
                world.after(start, client.go)

    def deliver(self, node: SimNode, effect: Deliver) -> None:
        """An instance begins: it runs the script of its request."""
        if effect.cancelled:
            node.step(Completed(effect.sid, False, b"cancelled"))
            return
        request = effect.request
        if object_of(effect.replica) == TRAN:  # the com layer has performed it
            self.ledgers[effect.replica].commit(str(request.invocation), effect.footprint)
            return
        if request.riders:
            self._convoy(node, effect)
            return
        at = self.program.by_name[object_of(effect.replica)]
        footprint = carried(request.args, effect.footprint)
        script = self.program.script(request, at, footprint)

        def change() -> float:
            if script.ok and not runner.stopped:
                self.ledgers[effect.replica].commit(str(request.invocation), footprint)
            return script.work

        def done() -> None:
            work = script.work + self.program.lingers(request.invocation, effect.replica)
            self.world.after(work, lambda: self._complete(runner, effect, script.ok and not runner.stopped))

        runner = InstanceRunner(node, effect.sid, script.acts, change, done)
        chance = self.program.chance("patience", request.invocation)
        # replicas do not lose patience at the same moment: what they do then must not differ
        if _performed_once(effect) and chance.random() < self.program.shape.cancel / 2:
            runner.patience = chance.uniform(0.0, 15.0)
        self.running[effect.sid] = runner
        runner.reads = str(request.invocation) if effect.footprint.readonly else ""
        if script.acts:  # what it sends tells of what it follows
            node.disk.when_written(effect.replica, runner.go)
        else:
            runner.go()

    def may_travel(self, client: str, call: int, part: Outgoing) -> bool:
        chance = self.program.chance("together", client, call)
        at = self.program.by_name[part.object]
        if chance.random() >= self.program.shape.convoys or part.replicas != at.replicas:
            return False
        return not self.program.script_of(Invocation(client, (call,)), part.args, (), at, part.footprint).acts

    def _convoy(self, node: SimNode, effect: Deliver) -> None:
        """Its calls are performed one after the other; each may raise."""
        at = self.program.by_name[object_of(effect.replica)]
        rides: list[tuple[bool, Invocation, Footprint, bool] | None] = []
        for i, request in enumerate(split(effect.request)):
            if i in effect.skips:
                rides.append(None)
                continue
            footprint = carried(request.args, effect.footprint)
            script, output = self.program.script(request, at, footprint), not request.group.no % 2
            rides.append((script.ok, request.invocation, footprint, output))

        def change() -> float:
            for ride in rides:
                if ride is not None and ride[0]:
                    self.ledgers[effect.replica].commit(str(ride[1]), ride[2])
            return work

        def done() -> None:
            self.world.after(work, complete)

        def complete() -> None:
            if self.running.get(effect.sid) is runner:
                del self.running[effect.sid]
                told = tuple([r and Ride(r[0], b"done" if r[3] else b"", r[3]) for r in rides])
                ok, nothing = any(r is not None and r.ok for r in told), not any(told)
                safe = nothing or self._is_safe(node, effect)
                node.step(Completed(effect.sid, ok, safe=safe, rides=told))

        work = self.program.chance("convoy", effect.request.invocation).uniform(0.0, 3.0)
        runner = self.running[effect.sid] = InstanceRunner(node, effect.sid, (), change, done)
        runner.go()

    def _complete(self, runner: InstanceRunner, effect: Deliver, ok: bool) -> None:
        if self.running.get(effect.sid) is not runner:
            return  # it is gone with its node
        del self.running[effect.sid]
        node = runner.node
        output = not effect.request.group.no % 2
        self.performed[effect.sid] = str(effect.request.invocation)
        node.step(Completed(effect.sid, ok, b"done" if output else b"", output, self._is_safe(node, effect)))

    def _is_safe(self, node: SimNode, effect: Deliver) -> bool:
        """What a durable replica did is not on disk yet; what it only read may be."""
        if not node.disk.keeps(effect.replica):
            return True
        return effect.footprint.readonly and not node.disk.waits(effect.replica)

    def stopped(self, node: SimNode, effect: Stop) -> None:
        """Most look whether they are still wanted, some run to their end."""
        runner = self.running.get(effect.sid)
        if runner is not None and self.program.chance("looks", effect.sid).random() < 0.8:
            runner.stop()

    def settle(self, node: SimNode, effect: Settle) -> None:
        invocation = self.performed.pop(effect.sid)
        self.world.upheaval.applied()
        if not effect.commit:
            ledger = self.ledgers[effect.replica]
            self.ledgers[effect.replica] = ledger.without(lambda done: done == invocation)

    def accepted(self, node: SimNode, effect: Accepted) -> None:
        self._keep(node, effect.client)
        self.clients[effect.client].accepted(effect.call)

    def _keep(self, node: SimNode, client: str) -> None:
        assert node.com is not None
        session = node.com.session(client)
        assert session is not None
        self.clients[client].keep(node, session)

    def received(self, node: SimNode, effect: Received) -> None:
        if effect.client and effect.group is None and self.program.shape.convoys:
            self.clients[effect.client].refused(effect.call)  # it was to travel with others, and never left
        elif effect.client:
            self._keep(node, effect.client)
            self.clients[effect.client].answer(effect)
        else:
            runner = self.running.get(effect.caller)
            if runner is not None:  # else it was stopped, and this crossed with its cancelling
                runner.received(effect.call)

    # changes of the group

    def refused(self, node: SimNode, event: Submit | Collect | Decide) -> None:
        if isinstance(event, Decide):
            self.clients[event.client].refused(event.call)
        elif isinstance(event.caller, str):
            self.clients[event.caller].refused(event.call)
        elif event.caller in self.running:
            self.running[event.caller].called -= 1
            self.running[event.caller].failed(event.call)

    def lost(self, node: SimNode) -> None:
        for client in self.clients.values():
            client.lost(node.name)

    def gone(self, node: SimNode) -> None:
        for sid in [sid for sid, runner in self.running.items() if runner.node is node]:
            self.running.pop(sid).gone = True
        for at, ledger in self.ledgers.items():
            if node_of(at) == node.name:
                self.ledgers[at] = Ledger(ledger.relation)
        self.lost(node)

    def copy(self, replica: Replica) -> State:
        if running := [str(sid) for sid, r in self.running.items() if sid.replica == replica and not r.only_reads]:
            raise OboError(f"the state of {replica} was to be taken while {', '.join(running)} is running there")
        reads = {r.reads for sid, r in self.running.items() if sid.replica == replica}
        return self.ledgers[replica].without(reads.__contains__)

    def hold(self, replica: Replica, running: Collection[str]) -> tuple[State, int]:
        state = self.ledgers[replica].without(lambda i: any(i == r or i.startswith(f"{r}.") for r in running))
        return state, state.performed

    def more(self, state: State, other: State) -> list[tuple[str, Footprint]]:
        assert isinstance(state, Ledger) and isinstance(other, Ledger)
        return other.beyond(state)

    def again(self, replica: Replica, state: State, more: Collection[tuple[str, Footprint]]) -> State:
        assert isinstance(state, Ledger)
        state = state.copy()
        for invocation, footprint in more:
            state.commit(invocation, footprint)
        return state

    def adopt(self, replica: Replica, state: State) -> None:
        assert isinstance(state, Ledger)
        self.ledgers[replica] = state.copy()

    def busy(self) -> bool:
        return bool(self.running) or not all(c.over for c in self.clients.values())

    def states(self, node: Node) -> list[tuple[str, str, int]]:
        return [(r, s.digest(), s.performed) for r, s in self.ledgers.items() if r.endswith(f"@{node}")]


def _performed_once(effect: Deliver) -> bool:
    name = object_of(effect.replica)
    return sum(object_of(d.replica) == name for d in effect.request.dests) == 1


def placements(program: Program) -> list[Placement]:
    objects = [
        Placement(o.name, o.relation, [r.partition("@")[2] for r in o.replicas], program.durable(o.name))
        for o in program.hosted
    ]
    lasting = any(p.durable for p in objects)
    return (
        [*objects, tran([n for n in program.nodes if program.left.has(f"node {n}")], lasting)]
        if program.shape.transactions
        else objects
    )
