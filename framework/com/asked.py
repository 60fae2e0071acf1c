"""What a call must satisfy before anything of it is sent: BadRequest says what is wrong with it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from framework.com import receipt as receipts
from framework.com.caller import Caller
from framework.com.check import MANY, clock_limit, is_plain
from framework.com.events import Outgoing, Session, Submit
from framework.com.instance import Instance
from framework.com.messages import Kind, Transmission
from framework.errors import BadRequest, Unavailable
from framework.footprint import Relation
from framework.ids import TRAN, Invocation, ObjectName, Replica, Sid, check_name

if TYPE_CHECKING:
    from framework.com.core import Com

_KINDS, _TRANSMISSIONS = get_args(Kind), get_args(Transmission)


class Asked:
    def __init__(self, com: "Com", sessions: Mapping[str, Caller], last_of: Callable[[Replica], int]) -> None:
        self._com = com
        self._sessions = sessions
        self._last_of = last_of  # the number of the last request to a replica
        self._good: set[tuple[object, ...]] = set()
        self._relations: dict[ObjectName, Relation] = {}

    def check(self, event: Submit, caller: Caller | None) -> None:
        parts = event.parts
        shape = (event.transmission, event.receipt, event.kind, *[(p.object, p.replicas) for p in parts])
        if isinstance(event.caller, str):
            if event.caller not in self._sessions:
                check_name(event.caller, "client name")
        elif not isinstance(event.caller, Sid):
            raise BadRequest(f"caller {event.caller!r} is neither a client's name nor an instance")
        if shape not in self._good:  # the same few come again and again: what was good once is good
            self._check_kinds(event)
            self._check_shape(event)
            if len(self._good) < 4096:
                self._good.add(shape)
        deadline = event.deadline
        if deadline is not None and deadline != deadline:
            raise BadRequest("the deadline is not a number")
        self._check_numbers(event, caller)
        if isinstance(caller, Instance) and caller.finished is not None:
            raise BadRequest(f"instance {caller.sid} has been completed; it cannot send any more")
        self._check_footprints(parts)
        if caller is not None and event.kind != "oneway":
            caller.check_chain(parts)
        if (event.tran or event.votes) and parts[0].object != TRAN:
            self._check_votes(event)

    def _check_votes(self, event: Submit) -> None:
        name = Invocation(event.caller, (event.tran,)) if isinstance(event.caller, str) else None
        sender = self._com.calls.transaction(name) if name is not None else None
        self._com.trans.votes.check(event, name, sender is not None and bool(sender.calls))

    def _check_footprints(self, parts: Sequence[Outgoing]) -> None:
        for part in parts:
            footprint = part.footprint
            relation = self._relations.get(part.object)
            if relation is None:
                relation = self._relations[part.object] = self._com.directory.find(part.object).relation
            if not is_plain(footprint, relation):
                raise BadRequest(
                    f"{footprint!r} of a call of {part.object} is no footprint, names a key twice, or has a mode "
                    "that its class does not use"
                )

    def _check_shape(self, event: Submit) -> None:
        """Destinations and receipt."""
        parts = event.parts
        names = [p.object for p in parts]
        if not names or len(set(names)) != len(names):
            raise BadRequest(f"a transmission names each object once; this one names {names or 'none'}")
        if len(names) > 1 and event.transmission != "pcast":
            raise BadRequest(f"{event.transmission} sends one request; pcast sends different ones: {names}")
        for part in parts:
            declared = self._com.directory.find(part.object).replicas
            wrong = [r for r in part.replicas if r not in declared]
            if wrong or not part.replicas or len(set(part.replicas)) != len(part.replicas):
                raise BadRequest(f"{part.object} has the replicas {declared}; destinations {part.replicas} are wrong")
        if event.transmission == "ucast" and len(parts[0].replicas) > 1:
            raise BadRequest(f"ucast goes to one replica, not to {parts[0].replicas}")
        if event.receipt is not None:
            if event.kind == "oneway":
                raise BadRequest("a one-way request has no response to wait for")
            receipts.check(event.receipt, {p.object: p.replicas for p in parts})

    def _check_kinds(self, event: Submit) -> None:
        if event.kind not in _KINDS or event.transmission not in _TRANSMISSIONS:
            raise BadRequest(f"no kind {event.kind!r} or transmission {event.transmission!r}")
        receipts.check_wait(event.receipt, None)

    def _check_numbers(self, event: Submit, caller: Caller | None) -> None:
        """What travels must be within the limits that peers check: else one bad call would stop a whole link."""
        least, call, done = caller.next if caller is not None else 0, event.call, event.done
        if not least <= call < MANY:
            raise BadRequest(f"call number {call}; the next free one is {least}")
        if not 0 <= done <= (call if caller is None else 0):
            raise BadRequest(f"done {done} of call {call}: a client has no answers to calls after this one")
        for session in event.sessions if caller is None else ():
            if session.view > self._com.view:
                raise Unavailable(
                    f"the session has been in view {session.view}, {self._com.node} is still in view {self._com.view}"
                )
            why = self._com.checker.bad_context(session.context) or self._not_sent(session)
            if why or not 0 <= session.clock < clock_limit(self._com.clock):
                raise BadRequest(f"session {session.after!r}: {why or f'clock {session.clock} is out of range'}")

    def _not_sent(self, session: Session) -> str:
        for at, marks in session.context:
            if any(origin == self._com.node and seq > self._last_of(at) for origin, seq in marks):
                return f"it names a request to {at} that {self._com.node} has not sent"
        return ""
