"""Each rule of transactions (framework/com/tran.py), switched off: what to replace by what. As in mutants.py."""

from typing import Any

from framework.com.ahead import Ahead
from framework.com.event import Resolved
from framework.com.lasting import Lasting
from framework.com.outcome import Outcome
from framework.com.tran import Trans
from framework.com.view import VOTE, Directory
from framework.com.votes import Votes
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


def _nothing(*_: Any) -> dict[Any, None]:
    return {}


TRAN_MUTANTS: dict[str, Mutant] = {
    "what is held stays when the transaction is aborted": (Trans, "_release", _committed),
    "what a callee did that failed stays": (Trans, "_undo", _none),
    "what is held keeps nobody out": (Ahead, "_busy", _not_held),
    "who joins what is held passes whoever comes before it": (Ahead, "waits", _nothing),
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
