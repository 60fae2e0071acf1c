"""Calls of clients that the loop performs on the spot, instead of sending them to the replica of its own node.

It must be a call to one replica, which is here; the method short (short.py); its object not durable; nobody else in its
turn; and nothing in the com layer that it had to wait for (framework/com/spot.py). That is what most calls to objects
with one replica are, and most that only read. Of an object in a store of its own it is a read that the store can tell
at once (``Backed.at_once``), and that waits for no commit. Everything else goes the usual way, and so
does what turns out to be no such call: who has a doubt here says no.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from framework.com.core import Com
from framework.com.events import Response
from framework.com.host import Host
from framework.declare import LATER, Method
from framework.declare.codec import CANNOT_WRITE
from framework.declare.environment import CURRENT
from framework.errors import Broken, OboError
from framework.footprint import Footprint
from framework.ids import Invocation, Replica, node_of
from framework.orb.backed.resident import BackedResident
from framework.orb.given import Given
from framework.orb.limits import check_depth
from framework.orb.messages import Act, Ask, Call, Envelope, encode
from framework.orb.outcome import failure
from framework.orb.own import METHODS
from framework.orb.performance import Resident
from framework.orb.short import MOST_BYTES, Elsewhere, Short
from framework.orb.undo import Undo

if TYPE_CHECKING:
    from framework.orb.life import Life

#: What a one-way call is answered.
NOTHING: Final = Response(Replica(""), "", b"")


class Place:
    """A method at a replica that is here."""

    def __init__(self, method: Method, at: Replica, host: Host, resident: Resident, short: Short) -> None:
        self.method = method
        self.at = at
        self.host = host
        self.resident = resident
        self.short = short
        self.readonly = method.readonly
        self.returns_value = method.returns_value
        self.decode: Callable[[bytes], tuple[Any, ...]] = method.decode
        self.body: Callable[..., Any] = getattr(resident.object, method.name)
        self.undo = None if method.readonly else Undo(resident.tracker)
        self.backed = resident if isinstance(resident, BackedResident) else None
        keyed = method.keyed or self.backed is not None
        self.bare = None if keyed else method.footprint(())  # the same for all calls without a key
        self.values: tuple[Any, ...] = ()  # what it is called with; nobody else may hold on to them when it has ended


class Alone(Given):
    """What the method sees. It cannot call others: then a thread performs it, by the usual way."""

    @property
    def orb(self) -> Any:
        raise Elsewhere


class Spots:
    def __init__(self, life: "Life") -> None:
        self._life = life
        self._com: Com = life.com
        self._spot = life.com.spot
        self._places: dict[tuple[str, str], Place | None] = {}
        self.closed = False  # nothing is performed any more

    def perform(self, client: str, may_change: bool, message: Call) -> Response | None:
        """The answer; NOTHING for a one-way call; None: it was not performed, and has to go the usual way."""
        try:
            return self._perform(client, may_change, message)
        except OboError:
            raise  # nothing has changed
        except Exception as error:
            self._life.node.fail(error)
            return NOTHING

    def _perform(self, client: str, may_change: bool, message: Call) -> Response | None:
        act = message.act
        asks = act.parts
        if len(asks) != 1 or message.again or message.sessions or not _is_usual(act, asks[0]):
            return None
        ask = asks[0]
        key = ask.object, ask.method
        place = self._places[key] if key in self._places else self._look_up(ask)
        if place is None or not place.short.ok or len(ask.args) > MOST_BYTES:
            return None
        if not (may_change or place.readonly) or (act.kind == "oneway" and place.returns_value):
            return None
        life, at, method = self._life, place.at, place.method
        if self.closed or life.isolated or life.dispatch.watches(at):
            return None
        try:
            place.values = place.decode(ask.args)
        except CANNOT_WRITE:
            return None
        check_depth(method.where, ask.args, place.values)
        invocation = Invocation(client, (message.number,))
        basis: int | None = None
        if place.backed is None:
            footprint = place.bare or method.footprint(place.values)
        else:
            judged = _judged(place.backed, method, place.values)
            if judged is None or place.backed.uncommitted(judged[0]):
                return None
            footprint, basis = judged
        caller = self._spot.caller(client, invocation, message.done, place.host, footprint)
        if caller is None:
            return None
        envelope = Envelope(message.time, message.deadline, ask.args, basis)
        if place.backed is None:
            done = self._take_turn(place, invocation, envelope)
        else:
            done = _glanced(place, invocation, envelope, footprint)
        if done is None:
            return None
        ok, body = done
        kind, output = act.kind, ok and place.returns_value
        spotted = self._spot.did(caller, place.host, invocation, kind, message.done, footprint, ok, body, output)
        resident = place.resident
        resident.performed += ok
        if not place.readonly:
            resident.saw(invocation)
            if ok:
                resident.took(invocation)
                resident.recent.spotted(spotted, envelope, life.now())
        if life.tracing is not None:
            request = spotted.request(encode(envelope))
            for effect in self._spot.told(caller, place.host, spotted, request, ok, body):
                life.tracing.effect(effect)
        return Response(at, "ok" if ok else "error", body) if kind != "oneway" else NOTHING

    def _look_up(self, ask: Ask) -> Place | None:
        """None: its calls always go the usual way."""
        key = ask.object, ask.method
        try:
            place = self._find(ask.object, ask.method)
        except OboError:
            return None  # there is no such method; the usual way tells it, and names are not kept
        self._places[key] = place
        return place

    def _find(self, name: str, called: str) -> Place | None:
        life = self._life
        placement = life.node.naming.find(name)
        method = life.node.naming.method(name, called)
        at = next((r for r in placement.replicas if node_of(r) == life.node.name), None)
        if called in METHODS or at is None or (len(placement.replicas) > 1 and not method.readonly):
            return None
        resident = life.residents[at]
        if isinstance(resident, BackedResident):  # what takes long is known there, by the call
            return Place(method, at, life.com.hosts[at], resident, Short(True)) if method.readonly else None
        if resident.durable:
            return None
        short = life.stage.shorts[type(resident.object), method]
        return Place(method, at, life.com.hosts[at], resident, short) if short.ok else None

    def _take_turn(self, place: Place, invocation: Invocation, envelope: Envelope) -> tuple[bool, bytes] | None:
        undo, turn = place.undo, place.resident.turn
        if place.resident.over:
            return None
        if undo is None:
            return _timed(place, invocation, envelope)
        if not turn.take_if_free():
            return None
        try:
            return _timed(place, invocation, envelope)
        finally:
            undo.end()
            turn.give()


def _is_usual(act: Act, ask: Ask) -> bool:
    """Nothing is said about it that one would have to heed."""
    if act.transmission is not None or act.receipt is not None or act.stale or act.tran is not None:
        return False
    return (act.wait or act.kind == "oneway") and not act.independent and not ask.named and not ask.to


def _judged(resident: BackedResident, method: Method, values: tuple[Any, ...]) -> tuple[Footprint, int | None] | None:
    """None: it fails, by a mistake in its class or because the store is broken. The usual way tells that."""
    try:
        return resident.footprint(method, values)
    except Broken:
        return None
    except OboError:
        raise  # it refuses the call
    except Exception:
        return None


def _glanced(
    place: Place, invocation: Invocation, envelope: Envelope, footprint: Footprint
) -> tuple[bool, bytes] | None:
    resident, values = place.backed, place.values
    place.values = ()
    if resident is None or resident.over:
        return None
    token = CURRENT.set(Alone(invocation, envelope))
    try:
        found = resident.store.at_once(place.method.name, values, footprint.keys)
        return None if found is LATER else (True, place.method.pack_result(found))
    except Exception:  # as above
        return None
    finally:
        CURRENT.reset(token)


def _timed(place: Place, invocation: Invocation, envelope: Envelope) -> tuple[bool, bytes] | None:
    began = time.perf_counter()
    try:
        done = _performed(place, invocation, envelope)
    except Elsewhere:
        if place.undo is not None:
            place.undo.take_back()
        place.short.ok = False
        return None
    place.short.took(time.perf_counter() - began)
    return done


def _performed(place: Place, invocation: Invocation, envelope: Envelope) -> tuple[bool, bytes]:
    undo, values = place.undo, place.values
    place.values = ()
    if undo is not None:
        undo.begin()
    token = CURRENT.set(Alone(invocation, envelope))
    try:
        return True, place.method.pack_result(place.body(*values))
    except Elsewhere:
        raise
    except BaseException as error:  # also SystemExit: a method does not end the node
        if undo is not None:
            undo.take_back()
        return False, failure(error, place.resident.takes_part)
    finally:
        CURRENT.reset(token)
