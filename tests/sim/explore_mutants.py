"""Rules that no seeded world has shown to be needed, switched off: what to replace by what. As in mutants.py."""

from typing import Any

import msgspec

from framework.com.caller import Call
from framework.com.epoch import Epoch
from framework.com.handover import Handover
from framework.com.member import Membership
from framework.com.outcome import Outcomes
from framework.com.replies import Replies

from .mutants import Mutant


def _without_accepted(self: Membership, attempt: Any, now: float, real: Any = Membership._count_promises) -> None:
    kept = attempt.promises
    attempt.promises = {n: msgspec.structs.replace(p, accepted=None) for n, p in kept.items()}
    real(self, attempt, now)
    attempt.promises = kept


def _lowest_wins(self: Membership, attempt: Any, now: float, real: Any = Membership._count_promises) -> None:
    accepted = [p.accepted for p in attempt.promises.values() if p.accepted is not None]
    kept = attempt.promises
    if accepted:
        lowest = min(accepted, key=lambda a: a[0])
        attempt.promises = {
            n: msgspec.structs.replace(p, accepted=lowest if p.accepted is not None else None) for n, p in kept.items()
        }
    real(self, attempt, now)
    attempt.promises = kept


def _one_more(self: Replies, client: str, done: int, real: Any = Replies._acknowledge) -> None:
    real(self, client, done + 1)


def _takes_no_clock(self: Handover, event: Any, now: float, real: Any = Handover.take) -> None:
    kept = self.com.clock_at_least
    self.com.clock_at_least = lambda number: None  # type: ignore[method-assign]
    try:
        real(self, event, now)
    finally:
        self.com.clock_at_least = kept  # type: ignore[method-assign]


def _while_it_changes(self: Handover, replica: Any) -> bool:
    return not self.after_tran(replica) and replica in self.unready


def _none(*_: Any) -> None:
    return None


EXPLORE_MUTANTS: dict[str, Mutant] = {
    "what was accepted in an earlier ballot is ignored": (Membership, "_count_promises", _without_accepted),
    "the lowest ballot that was accepted wins": (Membership, "_count_promises", _lowest_wins),
    "a client's answers are forgotten one too early": (Replies, "_acknowledge", _one_more),
    "the clock does not go with the state": (Handover, "take", _takes_no_clock),
    "the context does not go with the state": (Epoch, "inherit", _none),
    "a commit may wait for itself": (Call, "is_open", lambda call, stateless=(): bool(call.silent)),
    "the state is taken while the view changes": (Handover, "may_take", _while_it_changes),
    "outcomes are forgotten early": (Outcomes, "__setitem__", _none),
}
