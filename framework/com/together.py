"""Calls of clients that leave together (framework.com.convoy): who goes with whom, and what each is answered."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from framework.com.caller import Call, Caller, ClientSession, sent
from framework.com.context import Context
from framework.com.convoy import pack_args, rides_of
from framework.com.events import Accepted, Received, Submit, Together
from framework.com.events import Response as Answer
from framework.com.messages import Dest, Part, Request, Response, Rider, WireContext
from framework.com.present import present
from framework.errors import Unavailable
from framework.footprint import INTENDS_READ, INTENDS_WRITE, READ, WRITE, Footprint, Mode
from framework.ids import GroupId, Invocation, ObjectName, Sid, node_of

if TYPE_CHECKING:
    from framework.com.calls import Calls

MOST: Final = 64  # calls in a convoy
LOOKS: Final = 256  # requests that are looked at, before it is said that there are too many


def union(footprints: Sequence[Footprint]) -> Footprint:
    """What all these calls of one method touch."""
    keys: dict[str, Mode] = {}
    for footprint in footprints:
        if footprint.keys is None:
            return footprint
        for key, mode in footprint.keys:
            had = keys.get(key)
            keys[key] = mode if had is None or had == mode else _both(had, mode)
    first = footprints[0]
    return Footprint(first.method, tuple(keys.items()), first.readonly)


def _both(a: Mode, b: Mode) -> Mode:
    """The weakest mode that conflicts with all that either conflicts with."""
    if INTENDS_READ in (a, b):
        return b if a == INTENDS_READ else a
    return WRITE if WRITE in (a, b) or {a, b} == {READ, INTENDS_WRITE} else a


class Convoys:
    """The sending side: calls that leave together, and their answers."""

    def __init__(self, calls: "Calls") -> None:
        self._calls = calls
        self._com = calls.com
        self._senders: dict[str, Caller] = {}  # by the name that stands for a client
        self._left: dict[ObjectName, list[Call]] = {}  # what has left here, and may be under way

    def send(self, event: Together, now: float) -> None:
        """Calls of one session leave in their order; those of different sessions have none."""
        quick = self._is_quick(event)
        odd = self._odd(event.submits, quick)
        shares = self._who_shares(event.submits, odd, quick)
        alone: list[Submit] = []
        shared: list[Submit] = []
        own: dict[str, list[Submit]] = {}  # calls of sessions that share with nobody
        for i, submit in enumerate(event.submits):
            client = str(submit.caller)
            if i in odd:  # what its session sent before goes first, and what it sends after this follows it
                alone += own.pop(client, [])
                alone.append(submit)
            elif shares[client]:
                shared.append(submit)
            else:
                own.setdefault(client, []).append(submit)
        for submit in alone:
            self._alone(submit, now, quick)
        for submits in (shared, *own.values()):
            for first in range(0, len(submits), MOST):
                some = submits[first : first + MOST]
                if len(some) > 1 and not self._must_wait(some):
                    self._go(event.name, some)
                else:
                    for submit in some:
                        self._alone(submit, now, quick)

    def _odd(self, submits: Sequence[Submit], quick: bool) -> set[int]:
        """Which of them go alone, whatever the others do."""
        out: set[int] = set()
        seen: set[tuple[str, int]] = set()
        for i, submit in enumerate(submits):
            client = str(submit.caller)
            again = (client, submit.call) in seen  # a convoy has each call once
            seen.add((client, submit.call))
            if again or self._is_special(submit, client) or not (quick or self._is_free(submit)):
                out.add(i)
        return out

    def _who_shares(self, submits: Sequence[Submit], odd: set[int], quick: bool) -> dict[str, bool]:
        """May calls of this session travel with those of others? All of them, or none: they leave in their order."""
        out: dict[str, bool] = {}
        for i, submit in enumerate(submits):
            client = str(submit.caller)
            if i in odd or (client in out and not quick):
                out[client] = False
            elif client not in out:
                out[client] = self._is_at_rest(submit, client, quick)
        return out

    def _is_special(self, submit: Submit, client: str) -> bool:
        """It waits for a peer, is repeated, or brings what a convoy has no room for."""
        calls = self._calls
        if submit.sessions or submit.tran or (calls.backlog.count and client in calls.backlog.lines):
            return True
        caller = calls.sessions.get(client)
        return calls.backlog.congested(submit) or (caller is not None and submit.call in caller.calls)

    def _must_wait(self, submits: Sequence[Submit]) -> bool:
        """Those that went alone may have filled the queue of a peer, and one of the same session may wait for that."""
        backlog = self._calls.backlog
        return backlog.congested(submits[0]) or any(str(s.caller) in backlog.lines for s in submits)

    def _is_quick(self, event: Together) -> bool:
        """Is all that is known here of their object over in a moment? Then it does not matter what waits for what."""
        com, brief = self._com, event.brief
        for at in event.submits[0].parts[0].replicas:
            host = com.hosts.get(at)
            if host is None:
                continue
            if len(host.order.entries) > LOOKS or len(com.instances) > LOOKS or com.trans.held:
                return False
            for entry in host.order.entries.values():
                if entry.tran is not None or entry.footprint.method not in brief:
                    return False
            for instance in com.instances.values():
                if instance.entry.footprint.method not in brief and instance.sid.replica == at:
                    return False
        return True

    def _is_free(self, submit: Submit) -> bool:
        """Does nothing that conflicts with it wait or run here?"""
        com, part = self._com, submit.parts[0]
        for at in part.replicas:
            host = com.hosts.get(at)
            if host is not None:
                ahead = host.order.ahead
                for slot in host.order.relation.slots(part.footprint)[1]:
                    if ahead.busy(slot):
                        return False
        return True

    def _is_at_rest(self, submit: Submit, client: str, quick: bool) -> bool:
        """Does its session wait for nothing that others should not wait for? ``quick``: not for what is brief."""
        caller = self._calls.sessions.get(client)
        if caller is None:
            return True
        replicas = submit.parts[0].replicas
        for call in caller.calls.values():
            if not (quick and call.brief and call.dests and call.dests[0] in replicas):
                return False
        return all(at in replicas for at, _ in caller.knows(self._com.known))

    def under_way(self, name: ObjectName) -> bool:
        """Has something brief left here for this object that is not received yet?"""
        calls = self._left.get(name)
        if not calls:
            return False
        still = [call for call in calls if not call.received]
        self._left[name] = still
        return bool(still)

    def _has_left(self, name: ObjectName, call: Call) -> None:
        call.brief = True
        calls = self._left.setdefault(name, [])
        calls.append(call)
        if len(calls) > MOST:
            self.under_way(name)

    def _alone(self, submit: Submit, now: float, quick: bool) -> None:
        """If too few replicas are left for it, or too much waits: as if it had waited for that (``Calls.relieve``).
        Nothing is raised: others have left already."""
        try:
            self._calls.submit(submit, now)
        except Unavailable:
            self._calls.refuse(str(submit.caller), submit)
            return
        caller = self._calls.sessions.get(str(submit.caller)) if quick else None
        call = caller.calls.get(submit.call) if caller is not None else None
        if call is not None:  # else it waits for a peer
            self._has_left(submit.parts[0].object, call)

    def _sender(self, name: str) -> Caller:
        found = self._senders.get(name)
        if found is None:
            sid = Sid(self._com.tick(), self._calls.tran)
            found = self._senders[name] = Caller(sid, self._calls.tran_cid(sid), "", Invocation(name, ()))
        return found

    def _go(self, name: str, submits: list[Submit]) -> None:
        com, calls, first = self._com, self._calls, submits[0]
        if com.view > 1 or len(com.lives.view.members) < len(com.directory.nodes):
            try:
                first = present(com, first)
            except Unavailable:
                for submit in submits:
                    calls.refuse(str(submit.caller), submit)
                return
        sender, part = self._sender(name), first.parts[0]
        footprint = union([s.parts[0].footprint for s in submits])
        parts = (Part(part.object, footprint),)
        dests = tuple([Dest(at, calls.number(at)) for at in part.replicas])
        number, sid = com.tick(), sender.sid
        group = GroupId(sid[0], sid[1], sender.no)
        invocation = Invocation(name, (sender.no,))
        sender.no += 1
        callers = [calls.session_of(str(s.caller)) for s in submits]
        context = self._context(callers)
        ordered = com.directory.needs_agreement(dests, parts)
        call = Call(invocation.path[0], group, dests, first.absent)
        call.receipt = first.receipt
        self._has_left(part.object, call)
        if ordered and context:
            call.brought = tuple([c for c in context if c[0] in part.replicas])
        riders = call.riders
        wire: list[Rider] = []
        for submit, caller in zip(submits, callers, strict=True):
            own = Call(submit.call, GroupId(caller.sid[0], caller.sid[1], caller.no), dests, first.absent)
            caller.no += 1
            own.receipt, own.deadline, own.rides = submit.receipt, submit.deadline, True
            own.brief = True
            calls.enter(caller, own)
            riders.append((caller, own))
            wire.append(Rider(own.group, Invocation(caller.client, (submit.call,)), submit.done))
        request = Request(
            com.view,
            group,
            invocation,
            "async",
            part.replicas[0],
            dests,
            parts,
            number,
            ordered,
            context,
            (),
            1,
            0,
            pack_args([s.parts[0].args for s in submits]),
            tuple(wire),
        )
        for at, _ in dests:
            com.post(node_of(at), request if at == request.target else msgspec.structs.replace(request, target=at))
        calls.expect(sender, call)
        for caller in dict.fromkeys(callers):
            for dest in dests:
                caller.sent(dest, (com.node, dest[1]), "async", False)
        for submit, caller, (_, own), rider in zip(submits, callers, riders, wire, strict=True):
            if com.told:
                com.tell(sent(caller, submit, own, parts, rider.invocation, (number, ordered), context, None))
            caller.went_on(own.group, "sent")
            com.tell(Accepted(caller.client, submit.call))
            calls.forget_below(caller, submit.done)
        self.arm(call)

    def _context(self, callers: Sequence[Caller]) -> WireContext:
        known = self._com.known
        first = callers[0]
        if all(c is first for c in callers):
            return first.knows(known)
        merged = Context()
        for caller in callers:
            wire = caller.knows(known)
            if wire:
                merged.merge_wire(wire)
        return merged.wire()

    def arm(self, call: Call) -> None:
        """It is looked at when the first of its calls is late."""
        left = [own.deadline for _, own in call.riders if own.deadline is not None and not own.received]
        call.deadline = min(left) if left else None
        self._calls.push_deadline(call.deadline, call.group)

    def expired(self, call: Call, now: float) -> None:
        late = [
            i for i, (_, own) in enumerate(call.riders) if own.deadline is not None and own.deadline <= now
        ]  # those of others may be later
        if call.receipt is not None:
            self._unload(call, late, tuple(call.got.values()), False)
            self.arm(call)

    def receive(self, call: Call, got: tuple[Response, ...], complete: bool) -> None:
        """The receipt of all its calls is complete, or never will be."""
        call.received = True
        self._unload(call, range(len(call.riders)), got, complete)
        call.receipt = None

    def _unload(self, call: Call, which: Sequence[int], got: tuple[Response, ...], complete: bool) -> None:
        count = len(call.riders)
        results = [(m.replica, rides_of(m.body, count)) for m in got]
        merges = any(m.context for m in got)
        for i in which:
            caller, own = call.riders[i]
            if own.received:
                continue  # it was cancelled, its client has left, or it was late
            receipt, own.receipt, own.received = own.receipt, None, True
            assert receipt is not None
            caller.acted = True
            if merges:
                caller.received(got)
            answers = tuple([Answer(at, ride[i][0], ride[i][1]) for at, ride in results])
            if isinstance(caller, ClientSession):
                caller.went_on(own.group, "received")
            del caller.calls[own.number]
            self._com.tell(Received(caller.sid, caller.client, own.number, own.group, receipt, answers, complete))
