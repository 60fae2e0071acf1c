"""What a word from a peer must satisfy before anything of it is used: what is installed cannot be taken back.

Words carry decisions that others have made, so most can only be judged for what they say of themselves: that the lists
fit together, that names are known, that numbers are in range, and that what a decision brings is what it may bring.
"""

from framework.com.check import MANY, Checker, clock_limit
from framework.com.lives import Lives
from framework.com.messages import Frame
from framework.com.view import View
from framework.com.words import (
    Accept,
    AnyWord,
    Ballot,
    Behind,
    Decided,
    Decision,
    Excluded,
    Hello,
    Prepare,
    Promise,
    Refuse,
    Report,
)
from framework.errors import BadMessage
from framework.ids import Node, node_of


class WordChecker:
    def __init__(self, checker: Checker, lives: Lives) -> None:
        self._checker = checker
        self._nodes = checker.directory.nodes
        self._lives = lives

    def word(self, word: AnyWord, peer: Node, clock: int) -> None:
        """Raise BadMessage if this word cannot come from this peer. ``clock`` is our own."""
        where = f"{type(word).__name__} from {peer}"
        if word.source != peer:
            raise BadMessage(f"{where}: says it comes from {word.source!r}")
        if isinstance(word, Hello):
            self._known([n for n, _ in word.heard], where)
        elif isinstance(word, Decided):
            self._decision(word.decision, where, clock)
        elif isinstance(word, Excluded):
            self._view(word.view, where)
        elif not isinstance(word, Behind):
            self._ballot(word.ballot, where)
            if isinstance(word, Prepare):
                self._prepare(word, where)
            elif isinstance(word, Promise):
                self._promise(word, where, clock)
            elif isinstance(word, Refuse):
                self._ballot(word.promised, where)
            elif isinstance(word, Accept):
                self._decision(word.decision, where, clock)

    def _known(self, nodes: list[Node] | tuple[Node, ...], where: str) -> None:
        if strange := [n for n in nodes if n not in self._nodes]:
            raise BadMessage(f"{where}: {', '.join(map(repr, strange))} is no node of the configuration")

    def _ballot(self, ballot: Ballot, where: str) -> None:
        if not 0 <= ballot.round < MANY or (ballot.round and ballot.node not in self._nodes):
            raise BadMessage(f"{where}: the ballot {ballot.round} of {ballot.node!r} is out of range")

    def _prepare(self, word: Prepare, where: str) -> None:
        self._known(word.leaving, where)
        if word.ballot.node != word.source:
            raise BadMessage(f"{where}: the ballot is of {word.ballot.node}")
        view = self._lives.view
        stay = [n for n in view.members if n not in word.leaving]
        if word.version == view.version and len(stay) < view.majority:
            raise BadMessage(f"{where}: without {', '.join(word.leaving)} no majority of view {view.version} is left")

    def _promise(self, word: Promise, where: str, clock: int) -> None:
        self._known([*word.suspects, *(n for n, _, _ in word.outsiders)], where)
        self._report(word.report, where, clock)
        if word.accepted is not None:
            self._ballot(word.accepted[0], where)
            self._decision(word.accepted[1], where, clock)

    def _view(self, view: View, where: str) -> None:
        self._known(view.members, where)
        count = len(view.members)
        if len(set(view.members)) != count or {len(view.since), len(view.incarnations)} - {0, count}:
            raise BadMessage(f"{where}: view {view.version} names a member twice, or its lists do not fit together")
        if not 0 < view.version < MANY or any(not 0 < since <= view.version for since in view.since):
            raise BadMessage(f"{where}: view {view.version} or a life in it is out of range")

    def _decision(self, decision: Decision, where: str, clock: int) -> None:
        view, mine = decision.view, self._lives.view
        self._view(view, where)
        if view.formation != mine.formation:
            raise BadMessage(f"{where}: view {view.version} is of another formation of the group")
        self._known(decision.left, where)
        if any(n not in view.members or view.life(n) != view.version for n in decision.joined):
            raise BadMessage(f"{where}: who joins must be a member from view {view.version} on")
        if any(n in view.members and n not in decision.joined for n in decision.left):
            raise BadMessage(f"{where}: {', '.join(decision.left)} cannot leave and stay")
        self._report(decision.report, where, clock)
        if view.version == mine.version + 1 and not view.formed:
            self._follows(decision, mine, where)

    def _follows(self, decision: Decision, mine: View, where: str) -> None:
        """It comes right after our own view: then we know who was there before."""
        view = decision.view
        stay = [n for n in mine.members if view.life(n) == mine.life(n)]
        if len(stay) < mine.majority:
            raise BadMessage(f"{where}: view {view.version} does not hold a majority of view {mine.version}")
        if unsaid := [n for n in mine.members if n not in stay and n not in decision.left]:
            raise BadMessage(f"{where}: view {view.version} is without {', '.join(unsaid)}, who did not leave")
        if strangers := [r for r in decision.report.requests if node_of(r.group.replica) not in decision.left]:
            raise BadMessage(f"{where}: brings {strangers[0].group}, whose origin does not leave")

    def _report(self, report: Report, where: str, clock: int) -> None:
        for request in report.requests:
            origin = node_of(request.group.replica)
            frame = Frame(origin, max(1, request.view), 1, 0, 0, 0, (request,))
            self._checker.brought(frame, clock)
        for placed in report.proposals:
            if not 0 < placed.number < clock_limit(clock):
                raise BadMessage(f"{where}: the proposal {placed.number} for {placed.group} is out of range")
