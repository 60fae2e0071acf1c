"""A node that takes one chosen event at a time, and performs what its com layer delivers.

What it does depends on its own events alone, in their order: not on a clock, not on chance, not on other nodes. So what
it does after the same events can be looked up (framework.sim.explore.machine). Its time goes on by ``TICK`` with each
tick.

An event is a tuple of words, the first of which says what happens; a choice is what ``enabled`` offers:

    takes NODE, gets NODE   a frame has come from there; an item of state transfer has
    client NAME             the client does the next thing of its script
    ends SID                the instance has been performed
    sends NODE              the link to this peer takes a frame
    ticks                   time passes
    evicts NODE, vetoes TRAN, cancels CLIENT/N, moves CLIENT, crashes, returns
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from framework.com.core import Com
from framework.com.events import (
    Accepted,
    AnyEffect,
    AnyEvent,
    Arrived,
    Begin,
    Cancel,
    Collect,
    Completed,
    Decide,
    Deliver,
    Evict,
    Give,
    Installed,
    Out,
    Outgoing,
    Received,
    Session,
    Settle,
    Snapshot,
    Submit,
    Take,
    Tick,
    Transmit,
    Veto,
    Wake,
    Writable,
)
from framework.com.link import Timing
from framework.com.messages import Transmission
from framework.com.outsider import Admitted, Outsider
from framework.com.receipt import Receipt
from framework.com.tran import known
from framework.com.view import NOBODY, OUTCOMES, Directory
from framework.errors import BadRequest, Unavailable
from framework.footprint import Footprint, Relation
from framework.ids import TRAN, Invocation, Node, ObjectName, Replica, Sid, object_of, replica
from framework.sim.explore.scenario import Act, Scenario, footprint
from framework.sim.ledger import Ledger
from framework.trace.files import Trace
from framework.trace.record import Header, Record
from framework.trace.recorder import Recorder, header
from framework.trace.still_open import open_calls

TICK: Final = 30.0
TIMING: Final = Timing(delta=25.0, ask_after=1e9, resend_after=1e9, suspect_after=float("inf"), hold_most=3000.0)
_LOSSY: Final = msgspec.structs.replace(TIMING, ask_after=1.0, resend_after=60.0)
_WATCHFUL: Final = 300.0  # suspected after this where the group changes: only in the fair end so much time passes

Event = tuple[Any, ...]
#: What leaves a node: to whom, and ("frame", data), ("ask", ...), ("state", ...) or ("client", ...).
Item = tuple[str, tuple[Any, ...]]


def timing(scenario: Scenario) -> Timing:
    choices = scenario.choices
    chosen = _LOSSY if choices.losses or choices.returns else TIMING  # what comes before a node is admitted is lost
    if (choices.crashes or choices.returns) and scenario.rounds:
        return msgspec.structs.replace(chosen, suspect_after=_WATCHFUL)
    return chosen


class Runner:
    """How far a script has come."""

    __slots__ = ("acts", "bring", "later", "next", "number", "open", "session", "tran", "waits")

    def __init__(self, acts: Sequence[Act]) -> None:
        self.acts = tuple(acts)
        self.next = 0
        self.number = 1  # of the next call
        self.waits: int | None = None  # for the answer of this call
        self.later: list[tuple[int, Receipt]] = []  # asynchronous calls, to be collected
        self.tran = 0  # the transaction of a client
        self.session: Session | None = None  # of a client, the newest that it was given here
        self.bring: tuple[Session, ...] = ()  # what it brings along from its last home
        self.open: dict[int, tuple[Act, tuple[Session, ...]]] = {}  # calls without an answer, and what it knew before

    @property
    def over(self) -> bool:
        return self.waits is None and not self.later and self.next >= len(self.acts)


class Stepper:
    def __init__(self, scenario: Scenario, name: str) -> None:
        self.scenario = scenario
        self.name = Node(name)
        self.directory = scenario.directory()
        self.timing = timing(scenario)
        self.com: Com | None = None  # while it is a member
        self.outsider: Outsider | None = None  # while it wants to be one
        self.now = 0.0
        self.at = 0.0  # the time of records
        self.told: list[Header | Record] = []  # a header begins the trace of a life
        self.sent: list[Item] = []
        self.recorder = Recorder(self.name, 1, self.told.append)
        self.clients = {c.name: Runner(c.acts) for c in scenario.clients if c.home == name}
        self.running: dict[Sid, tuple[Runner, Deliver]] = {}
        self.ready: dict[str, Sid] = {}  # instances that are to end
        self.performed: dict[Sid, str] = {}  # instances that may have to be taken back
        self.ledgers: dict[Replica, Ledger] = {}
        self._relations = {p.name: p.relation for p in self.directory.objects.values()}
        self._incarnation = 1
        self._asked = 0
        self._woken: dict[Node, None] = {}
        self._todo: deque[AnyEvent] = deque()
        choices = scenario.choices
        self._ticks = dict(choices.ticks).get(name, 0)
        self._evicts = [node for node, by in choices.evicts if by == name]
        self._vetoes = [tran for tran, by in choices.vetoes if by == name]
        self._cancels = [(c, n) for c, n in choices.cancels if c in self.clients]
        self._moves = {client: node for client, node in choices.moves if client in self.clients}
        self._returns = name in choices.returns
        if name not in scenario.outside:
            self._live(self.directory)

    # what may happen

    @property
    def down(self) -> bool:
        """Is it neither a member nor wants to be one?"""
        return self.com is None and self.outsider is None

    def enabled(self) -> tuple[Event, ...]:
        """What may happen here now, beside arrivals and a crash."""
        if self.down:
            return (("returns",),) if self._returns else ()
        out: list[Event] = [("sends", peer) for peer in self._woken]
        out += [("ends", sid) for sid in self.ready]
        if self.com is not None:
            out += [("client", name) for name, run in self.clients.items() if run.waits is None and not run.over]
            out += [("evicts", node) for node in self._evicts[:1]]
            open_ones = known(self.com.trans) if self._vetoes else ()
            out += [("vetoes", tran) for tran in self._vetoes[:1] if Invocation.parse(tran) in open_ones]
            out += [("cancels", f"{c}/{n}") for c, n in self._cancels if self._waits(c, n)]
        out += [("moves", client) for client in self._moves if client in self.clients]
        if self._ticks:
            out.append(("ticks",))
        return tuple(out)

    def _waits(self, client: str, call: int) -> bool:
        return client in self.clients and self.clients[client].waits == call

    def apply(self, event: Event) -> list[Item]:
        """Let it happen; what leaves the node comes out."""
        self.sent = []
        word = event[0]
        if word == "takes":
            self._arrived(Arrived(Node(event[1]), event[2][1]))
        elif word == "gets":
            self._got(event[2])
        elif word == "client":
            self._act(event[1])
        elif word == "ends":
            self._end(self.ready.pop(event[1]))
        elif word == "sends":
            self._step(Writable(event[1]))
        elif word in ("ticks", "passes"):  # "passes": a tick of the fair end
            self._ticks -= word == "ticks"
            self.now += TICK
            self._tick()
        elif word == "evicts":
            self._evicts.remove(event[1])
            self._step(Evict(Node(event[1])))
        elif word == "vetoes":
            self._vetoes.remove(event[1])
            self._step(Veto(Invocation.parse(event[1]), "enough"))
        elif word == "cancels":
            self._cancel(*event[1].split("/"))
        elif word == "moves":
            self._move(event[1])
        elif word == "crashes":
            self._die()
        elif word == "returns":
            self._returns = False
            self._incarnation += 1
            version = self.directory.view.version
            self.outsider = Outsider(self.name, self._incarnation, self.directory, self.timing, version)
        else:
            raise BadRequest(f"{' '.join(map(str, event))} is nothing that can happen at {self.name}")
        return self.sent

    def is_over(self) -> bool:
        """Has everything here come to its end?"""
        if self.down:
            return True
        if self.com is None or self.com.unready or self._woken:
            return False
        return all(run.over for run in self.clients.values()) and not self.ready and not open_calls(self.com)

    def stop(self) -> None:
        """The run is over: write the last records."""
        if self.com is None:
            return
        for at, ledger in self.ledgers.items():
            if at not in self.com.unready:
                self.recorder.state(self.at, at, ledger.digest(), ledger.performed)
        self.recorder.stop(self.at, tuple(open_calls(self.com)))

    # its lives

    def _live(self, directory: Directory) -> None:
        self.outsider = None
        self.com = Com(self.name, directory, self.timing)
        self.directory = directory
        view = directory.view
        life = view.life(self.name) or 1
        self.told.append(header(self.name, directory))
        self.recorder = Recorder(self.name, view.version, self.told.append, life)
        for at in self.com.hosts:
            name = object_of(at)
            self.ledgers[at] = Ledger(OUTCOMES if name == TRAN else self._relations[name])
            if life > 1 and at not in self.com.unready:
                self.recorder.adopt(self.at, at, "")

    def _die(self) -> None:
        """A life is over, and with it the clients that lived here and do not move."""
        for client in [c for c in self._moves if c in self.clients]:
            self._move(client)
        if self.com is not None:
            self.directory = self.directory.at(self.com.lives.view)
        self.com = self.outsider = None
        for kept in (self.clients, self.running, self.ready, self.performed, self.ledgers, self._woken, self._todo):
            kept.clear()

    def _tick(self) -> None:
        if self.outsider is not None:
            self._outside(Tick())
        else:
            self._step(Tick())
            self._ask()

    def _arrived(self, event: Arrived) -> None:
        if self.outsider is not None:
            self._outside(event)
        else:
            self._step(event)

    def _outside(self, event: AnyEvent) -> None:
        assert self.outsider is not None
        for effect in self.outsider.step(event, self.now):
            if type(effect) is Admitted:
                self._live(self.directory.at(effect.view))
                assert self.com is not None
                self.com.member.last = effect.decision or self.com.member.last
                self._sow()
                self._ask()
            elif type(effect) is Transmit:
                self.sent.append((effect.peer, ("frame", effect.data)))

    # state transfer

    def _ask(self) -> None:
        """Ask for the states of the replicas here that have none: one donor after the other."""
        if self.com is None or not self.com.unready:
            return
        for mine, donors in self.com.unready.items():
            if donors:
                donor = donors[self._asked % len(donors)]
                theirs = replica(object_of(mine), donor)
                self.sent.append((donor, ("ask", theirs, self.name, self.com.lives.mine)))
        self._asked += 1

    def _sow(self) -> None:
        """Nobody has the state of an object: begin with the initial one where the view says so."""
        for mine, source in sorted(self.com.handover.seeds.items()) if self.com is not None else ():
            if source == NOBODY:
                self._take(mine, b"", "", ())

    def _got(self, item: tuple[Any, ...]) -> None:
        if self.com is None:
            return
        if item[0] == "client":
            self._come(*item[1:])
        elif item[0] == "ask":
            _, mine, to, life = item
            if mine not in self.com.unready:
                self._step(Give(mine, to, life))
        elif item[5] == self.com.lives.mine:
            self._take(*item[1:5])

    def _take(self, mine: Replica, part: bytes, ticket: str, done: Sequence[tuple[str, Footprint]]) -> None:
        if self.com is None or not self.com.handover.may_take(mine):
            return
        if ticket:
            self.ledgers[mine] = ledger = Ledger(self._relation(mine))
            for invocation, what in done:
                ledger.commit(invocation, what)
        self.recorder.adopt(self.at, mine, ticket)
        self._step(Take(mine, part))

    def _relation(self, at: Replica) -> Relation:
        return OUTCOMES if object_of(at) == TRAN else self._relations[object_of(at)]

    def _give(self, effect: Snapshot) -> None:
        done = tuple(self.ledgers[effect.replica].beyond(Ledger(self._relation(effect.replica))))
        mine, ticket = replica(object_of(effect.replica), effect.to), self.recorder.ticket(effect.replica)
        assert self.com is not None
        life = self.com.lives.view.life(effect.to)
        self.sent.append((effect.to, ("state", mine, effect.part, ticket, done, life)))

    # events and effects

    def _step(self, event: AnyEvent) -> None:
        """Feed an event, and all that it brings about here."""
        self._todo.append(event)
        while self._todo and self.com is not None:
            now = self._todo.popleft()
            if type(now) is Writable:
                self._woken.pop(now.peer, None)
                if now.peer not in self.com.links:
                    continue
            try:
                effects = self.com.step(now, self.now)
            except (Unavailable, BadRequest) as error:
                if isinstance(now, Submit | Decide | Collect) and (
                    type(now) is Collect or isinstance(error, Unavailable)
                ):
                    self._refused(now)
                elif not isinstance(now, Evict | Give):  # these may come at a bad moment
                    raise
                continue
            out = [effect for effect in effects if type(effect) is Out]
            for effect in effects:
                if type(effect) is not Out:
                    self._carry_out(effect)
            for effect in out:
                self.recorder.effect(effect, self.at)
                self._die()

    def _carry_out(self, effect: AnyEffect) -> None:
        if type(effect) is Transmit:
            self.sent.append((effect.peer, ("frame", effect.data)))
            return
        if type(effect) is Wake:
            if effect.peer not in self._woken:
                self._woken[effect.peer] = None
                if self.name not in self.scenario.choices.sends:
                    self._todo.append(Writable(effect.peer))
            return
        self.recorder.effect(effect, self.at)
        if type(effect) is Accepted and effect.client in self.clients:
            self._keep(effect.client, self.clients[effect.client])
        elif type(effect) is Deliver:
            self._deliver(effect)
        elif type(effect) is Received:
            self._received(effect)
        elif type(effect) is Settle:
            undone = self.performed.pop(effect.sid, None)
            if undone is not None and not effect.commit:
                ledger = self.ledgers[effect.replica]
                self.ledgers[effect.replica] = ledger.without(lambda done: done == undone)
        elif type(effect) is Snapshot:
            self._give(effect)
        elif type(effect) is Installed:
            self._sow()

    def _deliver(self, effect: Deliver) -> None:
        name = object_of(effect.replica)
        if effect.cancelled:
            self._todo.append(Completed(effect.sid, False, b"cancelled"))
        elif name == TRAN:  # the com layer has performed it
            self.ledgers[effect.replica].commit(str(effect.request.invocation), effect.footprint)
        else:
            script = self.scenario.scripts.get((name, effect.footprint.method))
            run = Runner(script.acts if script is not None else ())
            self.running[effect.sid] = run, effect
            self._go(effect.sid, run)

    def _received(self, effect: Received) -> None:
        if effect.client:
            run = self.clients.get(effect.client)
            if run is not None:
                self._keep(effect.client, run)
                run.open.pop(effect.call, None)
            if run is not None and run.waits == effect.call:
                run.waits = None
        elif effect.caller in self.running:
            run = self.running[effect.caller][0]
            if run.waits == effect.call:
                run.waits = None
                self._go(effect.caller, run)

    def _refused(self, event: Submit | Collect | Decide) -> None:
        """Too few are left who could perform this call: that is an answer, too."""
        who = event.client if isinstance(event, Decide) else event.caller
        run = self.clients.get(who) if isinstance(who, str) else self.running[who][0]
        if run is None:
            return
        run.later = [(call, receipt) for call, receipt in run.later if call != event.call]
        if run.waits == event.call:
            run.waits = None
            if not isinstance(who, str):
                self._go(who, run)

    # scripts

    def _go(self, sid: Sid, run: Runner) -> None:
        """Let an instance act up to where it waits, or to its end."""
        while run.next < len(run.acts):
            act = run.acts[run.next]
            run.next += 1
            self._todo.append(self._submit(sid, run, act, 0))
            if run.waits is not None:
                return
        if run.later:
            self._todo.append(self._collect(sid, run))
        elif self.scenario.choices.ends:
            self.ready[str(sid)] = sid
        else:
            self._todo.append(self._completed(sid))

    def _end(self, sid: Sid) -> None:
        self._step(self._completed(sid))

    def _completed(self, sid: Sid) -> Completed:
        _, effect = self.running.pop(sid)
        script = self.scenario.scripts.get((object_of(effect.replica), effect.footprint.method))
        fails = script is not None and script.fails
        if not fails:
            self.performed[sid] = invocation = str(effect.request.invocation)
            self.ledgers[effect.replica].commit(invocation, effect.footprint)
        return Completed(sid, not fails, b"bad" if fails else b"done", True)

    def _act(self, name: str) -> None:
        """The next thing that a client does: it collects before it decides, and at its end."""
        run = self.clients[name]
        act = run.acts[run.next] if run.next < len(run.acts) else None
        if run.later and (act is None or act.deed in ("commit", "abort")):
            self._step(self._collect(name, run))
            return
        assert act is not None
        run.next += 1
        if act.deed == "begin":
            run.tran = run.number
            run.number += 1
            self._step(Begin(name, run.tran, float("inf")))
        elif act.deed in ("commit", "abort"):
            call = run.waits = run.number
            run.number += 1
            self._step(Decide(name, call, run.tran, act.deed == "commit", done=call))
        else:
            self._step(self._submit(name, run, act, run.tran if act.inside else 0))

    def _submit(self, caller: Sid | str, run: Runner, act: Act, tran: int) -> Submit:
        call = run.number
        run.number += len(act.targets)
        if act.deed == "sync":
            run.waits = call
        elif act.deed == "async" and act.receipt is not None:
            run.later.append((call, act.receipt))
        event = self._call(caller, call, act, tran)
        if isinstance(caller, str):
            event.done = min([number for number, _ in run.later] + [call])
            event.sessions, run.bring = run.bring, ()
            if act.deed != "oneway":
                run.open[call] = act, (*event.sessions, *([run.session] if run.session is not None else []))
        return event

    def _call(self, caller: Sid | str, call: int, act: Act, tran: int = 0) -> Submit:
        parts = tuple(
            Outgoing(
                ObjectName(target.object),
                footprint(self.scenario, target),
                b"",
                tuple(replica(target.object, n) for n in target.nodes),
            )
            for target in act.targets
        )
        way: Transmission = "pcast" if len(parts) > 1 else "mcast" if len(parts[0].replicas) > 1 else "ucast"
        assert act.deed in ("sync", "async", "oneway")
        return Submit(caller, call, act.deed, way, parts, act.receipt if act.deed == "sync" else None, tran=tran)

    def _collect(self, caller: Sid | str, run: Runner) -> Collect:
        call, receipt = run.later.pop(0)
        run.waits = call
        return Collect(caller, call, receipt)

    # clients that move

    def _keep(self, client: str, run: Runner) -> None:
        assert self.com is not None
        run.session = self.com.session(client)

    def _move(self, client: str) -> None:
        """It goes to another node, with what it was given here."""
        run, node = self.clients.pop(client), self._moves.pop(client)
        known = (*run.bring, *([run.session] if run.session is not None else []))
        state = (run.next, run.number, run.waits, tuple(run.later), tuple(run.open.items()), known)
        self.sent.append((node, ("client", client, *state)))

    def _come(
        self,
        client: str,
        following: int,
        number: int,
        waits: int | None,
        later: tuple[tuple[int, Receipt], ...],
        calls: tuple[tuple[int, tuple[Act, tuple[Session, ...]]], ...],
        known: tuple[Session, ...],
    ) -> None:
        """A client comes from another node. It repeats what was not answered, with what it knew before each call."""
        run = Runner(next(c.acts for c in self.scenario.clients if c.name == client))
        run.next, run.number, run.waits, run.later, run.bring = following, number, waits, list(later), known
        run.open = dict(calls)
        self.clients[client] = run
        done = min(run.open, default=number)
        for call, (act, before) in calls:
            event = self._call(client, call, act)
            event.done, event.sessions = min(done, call), before
            self._step(event)

    def _cancel(self, client: str, number: str) -> None:
        call = int(number)
        self._cancels.remove((client, call))
        self.clients[client].waits = None
        self.clients[client].open.pop(call, None)
        self._step(Cancel(client, call))


def traces(told: Sequence[Header | Record]) -> list[Trace]:
    """One for each life of a node, from all that it told."""
    out: list[Trace] = []
    for item in told:
        if isinstance(item, Header):
            out.append(Trace(item, []))
        else:
            out[-1].records.append(item)
    return out
