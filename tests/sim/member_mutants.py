"""Each rule of membership (protocol.md §10), switched off: what to replace by what. As in mutants.py."""

from typing import Any

import msgspec

from framework.com import flush
from framework.com.entry import Entry
from framework.com.handover import Handover
from framework.com.host import Kept
from framework.com.member import Membership
from framework.com.view import View

from .mutants import Mutant


def _without_proposals(reports: Any, real: Any = flush.union) -> Any:
    return msgspec.structs.replace(real(reports), proposals=())


def _without_requests(reports: Any, real: Any = flush.union) -> Any:
    return msgspec.structs.replace(real(reports), requests=())


def _used_at_once(self: Membership, frame: Any, event: Any, now: float, real: Any = Membership.keeps) -> bool:
    link = self.com.links.get(event.peer)
    here = link is not None and (frame.life, frame.to) == (link.theirs, link.mine)
    return not (here and frame.view > self.view.version) and real(self, frame, event, now)


def _kept_by_nobody(self: Kept, known: object) -> None:
    self._entries.clear()


def _at_once(*_: Any) -> bool:
    return True


def _none(*_: Any) -> None:
    return None


MEMBER_MUTANTS: dict[str, Mutant] = {
    "proposals of the departed are not shared": (flush, "union", _without_proposals),
    "requests of the departed are not shared": (flush, "union", _without_requests),
    "anybody decides alone": (View, "majority", property(lambda self: 1)),
    "frames of a later view are used at once": (Membership, "keeps", _used_at_once),
    "delivered before all know its stamp": (Entry, "all_know", _at_once),
    "the state is given while earlier requests are under way": (Handover, "_no_earlier", _at_once),
    "the state is given while something changes it": (Handover, "_is_still", _at_once),
    "who is left out is listened to until the end": (Membership, "_freeze", _none),
    "what was delivered is not kept for others": (Kept, "prune", _kept_by_nobody),
}

_BUSY: dict[str, object] = {
    "objects": 2, "levels": 2, "conflict": 1.0, "keys": 0, "ucast": 0.0, "oneway": 0.5, "later": 0.2, "clients": 5,
    "calls": 25, "pace": 25.0, "back": 0.0, "repeat": 0.1, "cancel": 0.0, "wide": 0.3, "readonly": 0.1, "least": 3,
}  # fmt: skip

#: Rules that bite only where much is under way when somebody departs: everything conflicts and goes to many replicas.
MEMBER_FOCUS: dict[str, dict[str, object]] = {
    "proposals of the departed are not shared": _BUSY,
    "frames of a later view are used at once": _BUSY,
    "delivered before all know its stamp": _BUSY,
    "who is left out is listened to until the end": _BUSY,
}

#: Where to begin to look, for what is caught seldom: not all seeds before are tried in each run.
MEMBER_FROM = {"who is left out is listened to until the end": 190}
