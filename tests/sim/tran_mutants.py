"""Each rule of transactions (framework/com/tran.py), switched off: what to replace by what. As in mutants.py."""

from typing import Any

from framework.com import ahead
from framework.com.ahead import Ahead
from framework.com.caller import Call, ClientSession
from framework.com.calls import Calls
from framework.com.event import Resolved
from framework.com.host import Host
from framework.com.lasting import Lasting
from framework.com.order import Order
from framework.com.outcome import Outcome
from framework.com.tran import Trans, Votes
from framework.com.view import VOTE, Directory
from framework.ids import TRAN

from .mutants import Mutant


def _committed(self: Trans, many: Any, outcome: Any, real: Any = Trans._release) -> None:
    real(self, many, Outcome(True))


def _not_held(self: Ahead, slot: str) -> Any:
    return next((e for e in self.running.get(slot, {}).values() if not e.held), None)


def _unordered(self: Directory, dests: Any, parts: Any, real: Any = Directory.needs_agreement) -> bool:
    return bool(real(self, dests, parts)) and parts[0].object != TRAN


def _votes_unordered(self: Directory, dests: Any, parts: Any, real: Any = Directory.needs_agreement) -> bool:
    return bool(real(self, dests, parts)) and parts[0].footprint.method != VOTE


def _one_is_enough(self: Votes, part: Any, wanted: int, request: Any, real: Any = Votes.cast) -> Any:
    return real(self, part, 1, request)


def _no(*_: Any) -> bool:
    return False


def _none(*_: Any) -> None:
    return None


def _passes_predecessors(self: Order, entry: Any, real: Any = Order._undelivered) -> Any:
    return None if any(a.held for a in self.ahead.inside(entry)) else real(self, entry)


def _nowhere(self: Ahead, entry: Any) -> set[Any]:
    return set()


def _shares(self: ClientSession, other: ClientSession, known: Any) -> None:
    self._context, self._reads = other.context, other.reads


def _not_its_own(self: Host, entry: Any, request: Any, real: Any = Host._siblings) -> Any:
    return tuple([s for s in real(self, entry, request) if s[0] != self.replica])


TRAN_MUTANTS: dict[str, Mutant] = {
    "what is held stays when the transaction is aborted": (Trans, "_release", _committed),
    "what a callee did that failed stays": (Trans, "_undo", _none),
    "what is held keeps nobody out": (Ahead, "_busy", _not_held),
    "outcomes have no order": (Directory, "needs_agreement", _unordered),
    "a client commits before all have answered": (Trans, "_is_open", _no),
    "votes have no order": (Directory, "needs_agreement", _votes_unordered),
    "one vote is enough": (Votes, "cast", _one_is_enough),
    "nobody gives way, and nobody aborts for others": (Trans, "abort", _none),
}


def _none_is_kept(self: Lasting, real: Any = Lasting.tick) -> None:
    for at in tuple(self._doubts):
        del self._doubts[at]
        self._com.tell(Resolved(at, ()))


def _all_are_kept(self: Lasting, real: Any = Lasting.tick) -> None:
    for at, doubt in tuple(self._doubts.items()):
        del self._doubts[at]
        self._com.tell(Resolved(at, tuple([part for part, _ in doubt.parts])))


def _told_at_once(self: Lasting, root: Any, name: Any, event: Any) -> Any:
    return event


#: Rules without which transactions do not survive a crash of all nodes (framework/com/lasting.py).
LASTING_MUTANTS: dict[str, Mutant] = {
    "what is in doubt is dropped": (Lasting, "tick", _none_is_kept),
    "what is in doubt is kept": (Lasting, "tick", _all_are_kept),
    "a root answers before its outcome is on disk": (Lasting, "held_back", _told_at_once),
}


def _one_answer_is_enough(self: Call, stateless: object = ()) -> bool:
    return bool(self.silent)


#: Rules of order in transactions, and the conversation of tests/com/test_tran_order.py that shows each of them.
ORDER_MUTANTS: dict[str, tuple[Mutant, str]] = {
    "a part that joins held work passes its predecessors": (
        (Order, "_undelivered", _passes_predecessors),
        "a_part_does_not_pass_its_predecessor",
    ),
    "a part passes those that wait at one replica": (
        (Ahead, "_reach", _nowhere),
        "a_part_passes_only_where_all_its_destinations_would",
    ),
    "a request for several replicas waits for one at a single replica": (
        (ahead, "_is_overtaken", _no),
        "a_request_for_all_does_not_wait_for_one_at_a_single_replica",
    ),
    "an instance that is not settled does not name itself": (
        (Host, "_siblings", _not_its_own),
        "a_call_back_that_is_not_settled_is_named_also_where_it_runs",
    ),
    "a commit leaves before all replicas are prepared": (
        (Call, "is_open", _one_answer_is_enough),
        "a_commit_waits_until_each_replica_of_a_part_is_prepared",
    ),
    "one-way calls leave before the commit": (
        (Calls, "_waits_for_commit", _no),
        "one_way_calls_leave_with_the_commit",
    ),
    "a transaction of a client has the context of its session": (
        (ClientSession, "follow", _shares),
        "the_transaction_of_a_client_is_a_sender_of_its_own",
    ),
    "a session does not follow its transaction": (
        (ClientSession, "follow", _none),
        "",  # only worlds show it, in which a replica was not there to be prepared (tests/sim/test_rare.py)
    ),
}
