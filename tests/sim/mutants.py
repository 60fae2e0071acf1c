"""Each rule of the protocol, switched off: what to replace by what. Used to prove that the attack finds a fault."""

from collections.abc import Callable
from typing import Any

from framework.com import caller as cancels
from framework.com import receipt as receipts
from framework.com.ahead import Ahead
from framework.com.answers import Answers
from framework.com.caller import Call, Caller
from framework.com.calls import Calls
from framework.com.context import Context
from framework.com.core import Com
from framework.com.entry import LOWEST
from framework.com.epoch import Epoch
from framework.com.host import Host, Instance
from framework.com.link import Link
from framework.com.order import Order
from framework.com.past import Past
from framework.com.receipt import Receipt
from framework.footprint import Relation

Mutant = tuple[Any, str, Callable[..., Any]]  # owner, name, replacement


def _only_maxima(self: Context) -> Any:
    out = []
    for at in sorted(self.entries):
        top: dict[Any, int] = {}
        for origin, seq in self.entries[at]:
            top[origin] = max(seq, top.get(origin, 0))
        out.append((at, tuple(sorted(top.items()))))
    return tuple(out)


def _forget_what_is_replaced(self: Caller, dest: Any, mark: Any, kind: Any, readonly: bool) -> None:
    self.acted = True
    self.context.drop(dest.replica)


def _no_reads(self: Caller, dest: Any, mark: Any, kind: Any, readonly: bool, real: Any = Caller.sent) -> None:
    if not readonly:
        real(self, dest, mark, kind, readonly)


def _ignore_clocks(self: Com, number: int) -> None:
    pass


def _forget_both(self: Caller, call: Any) -> None:
    for at, _ in call.brought:
        self.context.drop(at)
    call.brought = ()


def _commit_without_context(self: Epoch, places: Any, *contexts: Any, agreed: Any = None) -> None:
    self._carry(places)


def _base_is_lost(self: Epoch, sid: Any) -> None:
    self.cid = sid
    self.slots.clear()
    self._context = Context()
    self._new.clear()


def _brought_nothing(self: Instance, request: Any) -> tuple[Any, Any]:
    return (), self.siblings


def _first_reader_wins(self: Relation, f: Any) -> Any:
    """Read and write locks on different keys of one call: only the first key counts."""
    return self.places(f)[:1], self._meets(f)[:2]


def _alike_by_destinations(self: Order, before: Any, after: Any) -> bool:
    return before.ordered and after.ordered and before.dests == after.dests


def _everything_conflicts(self: Relation, f: Any, real: Any = Relation._meets) -> Any:
    return tuple(sorted({slot for m in "abcd" for slot in real(self, f)} | {m + "\x00all" for m in "abcd"}))


def _one_less(receipt: Receipt, dests: Any, got: Any, real: Any = receipts.complete) -> bool:
    dests = tuple(dests)
    return real(Receipt("quorum", receipt.r - 1), dests, got) if receipt.r > 1 else real(receipt, dests, got)


def _aborts_answered_ok(self: Answers, request: Any, reply: Any, *rest: Any, real: Any = Answers._answer) -> None:
    status, reply.status = reply.status, "ok"
    real(self, request, reply, *rest)
    reply.status = status


def _or_only_reads(what: Any, real: Any = cancels.alone) -> bool:
    return real(what) or isinstance(what, Call) or all(p.footprint.readonly for p in what.parts)


def _given_up_is_forgotten(self: Calls, event: Any, now: float, real: Any = Calls.cancel) -> None:
    real(self, event, now)
    caller = self.callers.get(event.caller)
    call = caller.calls.pop(event.call, None) if caller is not None else None
    if call is not None:
        self._waiting.pop(call.group, None)


def _at_once(*_: Any) -> bool:
    return True


def _never(*_: Any) -> bool:
    return False


def _none(*_: Any) -> None:
    return None


def _nothing(*_: Any) -> list[Any]:
    return []


def _empty(*_: Any) -> tuple[Any, ...]:
    return ()


def _lowest(*_: Any) -> Any:
    return LOWEST


MUTANTS: dict[str, Mutant] = {
    # protocol.md §5.1 to §5.4
    "no context wait before proposing": (Order, "_is_ordered", _at_once),
    "proposed counts as ordered whatever the destinations": (Order, "_alike", _at_once),
    "a pcast that partly reads counts as alike": (Order, "_alike", _alike_by_destinations),
    "delivered before its predecessors": (Order, "_undelivered", _none),
    "stamp not above predecessors": (Order, "_above_predecessors", _lowest),
    "stamp not above conflicting requests": (Past, "highest_conflicting", _lowest),
    "no promise": (Past, "promise", _none),
    "no agreement": (Order, "_agreeable", _at_once),
    "conflicting requests not in stamp order": (Ahead, "_next_before", _none),
    "no ready condition": (Ahead, "_busy", _none),
    "keys of an index slot forgotten": (Relation, "slots", _first_reader_wins),
    "compatible requests wait, too": (Relation, "_meets", _everything_conflicts),
    "a quorum with one answer less": (receipts, "complete", _one_less),
    "an abort is answered as if it had committed": (Answers, "_answer", _aborts_answered_ok),
    # A1
    "performed again when a copy arrives": (Host, "_performed", _never),
    "waiting copies are performed, too": (Order, "_void_copies", _none),
    # protocol.md §4
    "maxima instead of sets in contexts": (Context, "wire", _only_maxima),
    "siblings of a group forgotten": (Host, "_siblings", _empty),
    "sending leaves nothing in the context": (Caller, "sent", _forget_what_is_replaced),
    "reads forgotten by their own instance": (Caller, "sent", _no_reads),
    "what is received is not merged": (Caller, "received", _none),
    "a call that is agreed is forgotten with what it stands for": (Caller, "agreed", _forget_both),
    "the request's context is not inherited": (Instance, "brought", _brought_nothing),
    "commit leaves nothing": (Epoch, "commit", _commit_without_context),
    "a new epoch forgets the one before": (Epoch, "_open", _base_is_lost),
    "no carry-over of running instances": (Epoch, "_carry", _none),
    "conflict opens no epoch": (Epoch, "_clashes", _never),
    "settled before its predecessors": (Order, "_settleable", _at_once),
    "a response always proves delivery": (Order, "is_settled", _at_once),
    # joining
    "no joining of an ancestor": (Ahead, "inside", _nothing),
    "a response does not wait for what came back": (Host, "hold", _never),
    "joins at any point of its ancestor": (Ahead, "_joinable", _at_once),
    # cancelling
    "one of several replicas is stopped": (cancels, "alone", _at_once),
    "one of several replicas that only read is stopped": (cancels, "alone", _or_only_reads),
    "an instance does not wait for a call that it gave up": (Calls, "cancel", _given_up_is_forgotten),
    # clocks and links
    "clock never merged": (Com, "clock_at_least", _ignore_clocks),
    "nothing is sent again": (Link, "again", _nothing),
}

#: Some rules bite only in worlds that use them much: shapes for those (framework.sim.program.Shape).
FOCUS: dict[str, dict[str, object]] = {
    "stamp not above predecessors": {"oneway": 0.5, "later": 0.3, "conflict": 0.5, "ucast": 0.3, "calls": 12},
    "maxima instead of sets in contexts": {"oneway": 0.5, "later": 0.3, "conflict": 0.5, "ucast": 0.3, "calls": 12},
    "settled before its predecessors": {
        "repeat": 0.9, "oneway": 0.5, "later": 0.3, "conflict": 0.5, "back": 0.6, "wide": 0.7, "clients": 5,
    },
    "a response always proves delivery": {"back": 0.8, "wide": 0.6, "conflict": 0.5, "oneway": 0.4, "cancel": 0.0},
    "joins at any point of its ancestor": {"back": 0.8, "wide": 0.6, "conflict": 0.5},
    "a response does not wait for what came back": {"back": 0.8, "wide": 0.6, "conflict": 0.5},
    "one of several replicas that only read is stopped": {"cancel": 0.6, "back": 0.8, "wide": 0.7, "conflict": 0.5},
    "an instance does not wait for a call that it gave up": {"cancel": 0.6, "back": 0.8, "wide": 0.7, "conflict": 0.5},
    "no carry-over of running instances": {
        "oneway": 0.8, "later": 0.0, "conflict": 0.3, "ucast": 0.3, "calls": 10, "levels": 2, "objects": 3,
        "wide": 0.8, "clients": 6, "keys": 0,
    },
    "a pcast that partly reads counts as alike": {
        "readonly": 0.4, "oneway": 0.7, "later": 0.1, "conflict": 0.6, "ucast": 0.0, "objects": 4, "levels": 2,
        "wide": 0.8, "calls": 10, "keys": 0, "clients": 4, "nodes": 3,
    },
}  # fmt: skip
