"""Rules of convoys (framework.com.convoy), switched off one by one: what to replace by what, and the worlds that show
it (framework.sim.program.Shape)."""

from typing import Any

from framework.com import convoy, together
from framework.com.caller import Caller
from framework.com.host import Host
from framework.com.order import Order
from framework.com.together import Convoys
from framework.footprint import Footprint

from .mutants import Mutant, _never


def _a_key_less(footprints: Any, real: Any = together.union) -> Footprint:
    whole = real(footprints)
    return Footprint(whole.method, whole.keys[:-1] if whole.keys else whole.keys, whole.readonly)


def _the_first_footprint(footprints: Any) -> Footprint:
    first: Footprint = footprints[0]
    return first


def _never_skipped(host: Any, request: Any, serial: bool) -> tuple[list[Any], tuple[int, ...]]:
    return [host.replies.begin(r.invocation, 1, r.done) for r in request.riders], ()


def _settled_at_its_start(self: Order, entry: Any, real: Any = Order._settle) -> None:
    was, entry.serial = entry.serial, False
    if entry.mark in self._by_mark:
        real(self, entry)
    entry.serial = was


def _of_the_first_caller(self: Convoys, callers: Any) -> Any:
    return callers[0].knows(self._com.known)


def _as_the_first(replies: Any, request: Any, rides: Any, real: Any = convoy.results) -> bytes:
    count = len(request.riders)
    return convoy.pack_rides([convoy.rides_of(real(replies, request, rides), count)[0]] * count)


def _in_part(self: Host, request: Any) -> bool:
    return any(invocation in self.replies for _, invocation in convoy.calls_of(request))


def _forgets_itself(self: Caller, call: Any, real: Any = Caller.agreed) -> None:
    real(self, call)
    for caller, _ in call.riders:
        for at in call.dests:
            caller.context.drop(at)


CONVOYS: dict[str, Mutant] = {
    "a key is dropped from what a convoy touches": (together, "union", _a_key_less),
    "a convoy touches what its first call does": (together, "union", _the_first_footprint),
    "a copy that was performed before is performed again": (convoy, "board", _never_skipped),
    "a convoy of calls that conflict is settled at its start": (Order, "_settle", _settled_at_its_start),
    "calls of a convoy that conflict are delivered at once": (convoy, "is_serial", _never),
    "only what the first caller follows comes first": (Convoys, "_context", _of_the_first_caller),
    "all calls are answered as the first one": (convoy, "results", _as_the_first),
    "a convoy is taken for performed if one of its calls was": (Host, "_performed", _in_part),
    "a convoy that is agreed is forgotten by its callers": (Caller, "agreed", _forgets_itself),
}

#: Many calls under way, that meet in some keys.
BUSY: dict[str, object] = {"convoys": True, "clients": 12, "later": 0.8, "conflict": 0.5, "keys": 3, "oneway": 0.0}
#: Clients that move, and repeat their calls.
MOVING: dict[str, object] = {"convoys": True, "repeat": 0.9, "conflict": 0.3}

#: Clients that read at one replica what they have just sent to several.
READING: dict[str, object] = {"convoys": True, "oneway": 0.0, "keys": 0, "conflict": 0.1, "ucast": 0.4}

FOCUS: dict[str, dict[str, object]] = {
    "a copy that was performed before is performed again": MOVING,
    "a convoy is taken for performed if one of its calls was": MOVING,
    "a convoy that is agreed is forgotten by its callers": READING,
}
