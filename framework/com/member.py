"""Membership: how the members of a view decide the next one (protocol.md §10.3, P2 §5).

One decision per version, by single-decree Paxos with the members of the view as acceptors. Whoever suspects a member,
hears a node that wants to join, or is asked to, makes an attempt; there is no coordinator. An attempt has a ballot:

    Prepare   to all who stay; each answers with a Promise: it takes part in no earlier attempt any more, uses nothing
              that comes from the leaving ones from then on (it is *frozen*), and reports what it has from them
    Accept    when ALL who stay have promised, and they are a majority of the view: the decision is the one that was
              accepted in the latest earlier attempt, or else the new view with the union of the reports
    Decided   when a majority of the view has accepted

All who stay must report, not only a majority: whatever one of them has used from the departed is then in the union. Who
does not answer is suspected and leaves with them. Nobody thaws before the next view is installed: an attempt that was
left half-way is finished by another one, if need be with a view of the same members.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from framework.com import flush
from framework.com.detect import Detector
from framework.com.events import Arrived, Isolated, Out, Transmit
from framework.com.messages import Frame, Moved, encode
from framework.com.states import State, state_of
from framework.com.telling import Changing
from framework.com.view import Holding, View
from framework.com.words import (
    NONE,
    Accept,
    Accepted,
    AnyWord,
    Ballot,
    Behind,
    Decided,
    Decision,
    Excluded,
    Hello,
    OfGroup,
    Prepare,
    Promise,
    Refuse,
    Voting,
)
from framework.errors import BadMessage, BadRequest
from framework.ids import Node

if TYPE_CHECKING:
    from framework.com.core import Com

KEPT = 4096  # frames of a later view, or of a frozen peer: more come again, as they are not acknowledged


class Outside(NamedTuple):
    """A node that wants to join."""

    incarnation: int
    heard_at: float
    holds: tuple[Holding, ...]


class Attempt:
    """An attempt of this node to decide the next view: who has promised and accepted, and what it would decide."""

    def __init__(self, ballot: Ballot, leaving: frozenset[Node]) -> None:
        self.ballot = ballot
        self.leaving = leaving
        self.promises: dict[Node, Promise] = {}
        self.decision: Decision | None = None
        self.accepted: set[Node] = set()

    def next(self, com: "Com", stay: Sequence[Node], outsiders: Mapping[Node, Outside]) -> Decision:
        """The next view, when all who stay have promised."""
        view = com.lives.view
        version = view.version + 1
        outside = {n: (o.incarnation, o.holds) for n, o in outsiders.items()}
        for promise in self.promises.values():
            outside.update({n: (i, holds) for n, i, holds in promise.outsiders})
        shunned = {n for promise in self.promises.values() for n in promise.shuns}
        joined = sorted(n for n in outside if n not in stay and n not in shunned)
        refused = tuple(sorted(n for n in outside if n in shunned))
        lives = {n: (view.life(n) or 1, view.incarnation(n) or 1) for n in stay}
        lives |= {n: (version, outside[n][0]) for n in joined}
        members = tuple(sorted(lives))
        unready = {r for n in stay for r in self.promises[n].unready}
        unready |= {r for n in joined for _, r in com.directory.on(n)}
        held = [h for n in stay for h in self.promises[n].holds if h.replica in unready]
        held += [h for n in joined for h in outside[n][1]]
        following = View(
            version,
            members,
            tuple(lives[n][0] for n in members),
            tuple(lives[n][1] for n in members),
            tuple(sorted(unready)),
            tuple(sorted(com.directory.seeds({n: lives[n][0] for n in members}, unready, held))),
            view.formation,
        )
        left = tuple(sorted(self.leaving))
        reports = flush.union([self.promises[n].report for n in stay])
        return Decision(following, left, tuple(joined), reports, refused)


class Membership:
    def __init__(self, com: "Com", suspect_after: float) -> None:
        self.com = com
        self.detector = Detector(suspect_after)
        self._watching = False
        self.patience = suspect_after / 2 if suspect_after < float("inf") else 1.0  # how long an attempt may take
        self.promised = NONE
        self.accepted: tuple[Ballot, Decision] | None = None
        self.frozen: dict[Node, list[Arrived]] = {}
        self.later: list[Arrived] = []
        self.attempt: Attempt | None = None
        self.unwanted: set[Node] = set()  # to be evicted, or leaving in order
        self.outsiders: dict[Node, Outside] = {}
        self.suspects: set[Node] = set()
        self.isolated = False
        self.last: Decision | None = decision_of(com.lives.view) if com.lives.view.formed else None  # began the view
        self._round = 0
        self._contended = 0  # attempts of this node against others, since a view was decided in its first round
        self._wished_at: float | None = None  # since when a change is wanted and nobody makes it
        self._promised_at = float("-inf")
        self._told: dict[Node, float] = {}
        self._shunned: set[Node] = set()  # who is left out because it is not heard here would be so again at once
        self._refused: dict[Node, float] = {}  # until when nobody tries again to let it in
        self._outside: dict[Node, float] = {}  # members that have not taken the view: when they were heard
        self.sureness = Sureness(com, self)

    @property
    def view(self) -> View:
        return self.com.lives.view

    @property
    def state(self) -> State:
        """For people; see framework.com.states."""
        return state_of(self.com.out, self.isolated, bool(self.frozen or self.attempt or self.promised != NONE))

    # time

    def tick(self, now: float) -> None:
        if not self._watching:
            self._watching = True
            for peer in self.com.links:
                self.detector.watch(peer, now)
        self.suspects = self.detector.look(now)
        if self.detector.stood_still:
            self.sureness.doubt()
        self._isolation()
        self.outsiders = {n: o for n, o in self.outsiders.items() if now - o.heard_at < 2 * self.patience}
        if self.sureness.few and self._all_outside(now):
            self._out(f"a majority of view {self.view.version} is lost: all begin anew", self.view)
            return
        leaving = self._leaving()
        stay = [n for n in self.view.members if n not in leaving]
        if self.attempt is not None:
            self._go_on(self.attempt, leaving, now)
        elif self._wanted(leaving, now) and len(stay) >= self.view.majority:
            self._wish(leaving, stay, now)
        else:
            self._wished_at = None

    def _all_outside(self, now: float) -> bool:
        """Is everybody there, but only outside, or in the same case? Then nobody can decide anything, and there is
        nobody else who could have decided something."""
        heard = set(self.view.members) - self.suspects
        outside = {n for n, at in self._outside.items() if now - at < 2 * self.patience} | self.outsiders.keys()
        return all(n in heard or n in outside for n in self.com.directory.nodes)

    def _leaving(self) -> frozenset[Node]:
        """Who is suspected or shall go; and who has a new incarnation, so that the old one is over. If too few would be
        left, those who shall go stay for now: else nobody could let anybody in (A8)."""
        reborn = {n for n, o in self.outsiders.items() if o.incarnation != self.view.incarnation(n)}
        gone = frozenset(n for n in self.view.members if n in self.suspects or n in reborn)
        every = gone.union(n for n in self.view.members if n in self.unwanted)
        return every if len(self.view.members) - len(every) >= self.view.majority else gone

    def _wanted(self, leaving: frozenset[Node], now: float) -> bool:
        stale = self.promised != NONE and now - self._promised_at > self.patience
        return bool(leaving or self.outsiders or stale)

    def _wish(self, leaving: frozenset[Node], stay: list[Node], now: float) -> None:
        """The first of those who stay tries at once, the others one after the other when nothing comes of it. A node
        that has met an attempt of another waits for its place in the view, and twice as long each time: so two that
        want different views do not overtake each other for ever (protocol.md §10.3)."""
        if self._wished_at is None:
            self._wished_at = now
        me = self.com.node
        rank = stay.index(me) if me in stay else 0
        if self._contended:
            rank = (self.view.members.index(me) + 1) << (self._contended - 1)
        since = max(self._wished_at, self._promised_at) if self.promised != NONE else self._wished_at
        if now - since >= rank * self.patience and (me in stay or me in self.unwanted):
            self._contended += self.promised != NONE
            self._begin(leaving, now)

    def _begin(self, leaving: frozenset[Node], now: float) -> None:
        self._round = max(self._round, self.promised.round) + 1
        ballot = Ballot(self._round, self.com.node)
        self._wished_at = None
        self.attempt = Attempt(ballot, leaving)
        self._say_again(self.attempt, now)

    def _give_way(self, now: float) -> None:
        """To an attempt with a higher ballot."""
        self.attempt, self._wished_at = None, now
        self._contended = max(self._contended, 1)

    def _go_on(self, attempt: Attempt, leaving: frozenset[Node], now: float) -> None:
        if self.promised > attempt.ballot:
            self._give_way(now)
            return
        silent = {s for promise in attempt.promises.values() for s in promise.suspects if s not in attempt.promises}
        wanted = frozenset(leaving | silent - {self.com.node}) if attempt.decision is None else leaving
        if wanted <= attempt.leaving:
            self._say_again(attempt, now)
            return
        for choice in (attempt.leaving | wanted, wanted, leaving):  # more, if enough stay; else not those heard again
            if len([n for n in self.view.members if n not in choice]) >= self.view.majority:
                self._begin(choice, now)
                return
        self._say_again(attempt, now)

    def _say_again(self, attempt: Attempt, now: float) -> None:
        me, version = self.com.node, self.view.version
        for node in self.view.members:
            if node in attempt.leaving and node != me:
                continue
            if attempt.decision is None and node not in attempt.promises:
                leaving = tuple(sorted(attempt.leaving))
                self._say(node, Prepare(me, self.com.lives.mine, version, attempt.ballot, leaving), now)
            elif attempt.decision is not None and node not in attempt.accepted:
                self._say(node, Accept(me, self.com.lives.mine, version, attempt.ballot, attempt.decision), now)

    def _isolation(self) -> None:
        isolated = self.sureness.few or (self.isolated and not self.sureness.whole)
        if isolated != self.isolated:
            self.isolated = isolated
            self.com.tell(Isolated(isolated))
            if isolated:
                self.sureness.doubt()

    # what people want

    def evict(self, node: Node) -> None:
        if node not in self.view.members:
            raise BadRequest(f"{node!r} is not a member of view {self.view.version}: {', '.join(self.view.members)}")
        stay = [n for n in self.view.members if n not in self.unwanted | {node}]
        if len(stay) < self.view.majority:
            raise BadRequest(
                f"without {node} only {len(stay)} of the {len(self.view.members)} members of view {self.view.version} "
                f"would be left; {self.view.majority} are needed"
            )
        self.unwanted.add(node)

    # frames that must wait

    def keeps(self, frame: Frame, event: Arrived, now: float) -> bool:
        """Is this frame not to be used now? It is kept, or its sender is told that it is out of date."""
        peer, view = event.peer, self.view
        link = self.com.links.get(peer)
        if link is None or (frame.life, frame.to) != (link.theirs, link.mine):
            if frame.view <= view.version:
                self._tell_stranger(peer, frame.life, now)
                return True
        else:
            self.detector.heard(peer, now)
            if frame.view < view.version:
                self._tell_decision(peer, now)
        if frame.view > view.version:
            if len(self.later) < KEPT:
                self.later.append(event)
            if self._may_tell(peer, now):  # who decided it may not be there any more to tell
                self._say(peer, Behind(self.com.node, self.com.lives.mine, view.version), now)
            return True
        if peer in self.frozen:
            if len(self.frozen[peer]) < KEPT:
                self.frozen[peer].append(event)
            return True
        return False

    def _tell_stranger(self, peer: Node, life: int, now: float) -> None:
        """Somebody who is not in the view, or was before in another life."""
        if self.view.life(peer) != life and self._may_tell(peer, now):
            self._say(peer, Excluded(self.com.node, self.view), now)

    def _tell_decision(self, peer: Node, now: float) -> None:
        if self.last is not None and self._may_tell(peer, now):
            self._say(peer, Decided(self.com.node, self.last), now)

    def _may_tell(self, peer: Node, now: float) -> bool:
        if now - self._told.get(peer, float("-inf")) < self.com.timing.delta:
            return False
        self._told[peer] = now
        return True

    # words

    def _say(self, node: Node, word: AnyWord, now: float) -> None:
        if node == self.com.node:
            self.word(word, now)
            return
        if isinstance(word, OfGroup):
            word = msgspec.structs.replace(word, formation=self.view.formation)
        self.com.tell(Transmit(node, encode(word)))

    def word(self, word: AnyWord, now: float) -> None:
        if isinstance(word, Hello):
            self._hello(word, now)
        elif isinstance(word, Decided):
            self._decided(word.decision, now)
        elif isinstance(word, Excluded):
            if word.view.version > self.view.version and word.view.life(self.com.node) != self.com.lives.mine:
                self._out(
                    f"{word.source} is in view {word.view.version}, of which this node is not a member", word.view
                )
        elif self.view.life(word.source) != word.life:
            self._tell_stranger(word.source, word.life, now)
        elif word.version < self.view.version:
            self._tell_decision(word.source, now)
        elif word.version == self.view.version and not isinstance(word, Behind):
            self.detector.heard(word.source, now)
            self._vote(word, now)

    def _vote(self, word: Voting, now: float) -> None:
        if isinstance(word, Prepare):
            self._prepare(word, now)
        elif isinstance(word, Accept):
            self._accept(word, now)
        elif isinstance(word, Refuse):
            self._round = max(self._round, word.promised.round)
            if self.attempt is not None and word.ballot == self.attempt.ballot:
                self._give_way(now)
        elif self.attempt is not None and word.ballot == self.attempt.ballot:
            if isinstance(word, Promise):
                self.attempt.promises[word.source] = word
                self._count_promises(self.attempt, now)
            else:
                self.attempt.accepted.add(word.source)
                self._count_accepted(self.attempt, now)

    def _hello(self, word: Hello, now: float) -> None:
        if word.source in self._shunned:
            self._shunned.discard(word.source)
            self._refused.pop(word.source, None)  # the others have refused it because it was not heard here
        if now < self._refused.get(word.source, now):
            return
        if self.view.incarnation(word.source) == word.incarnation and self.view.life(word.source) is not None:
            self._outside[word.source] = now
            self._tell_decision(word.source, now)
        else:
            self.outsiders[word.source] = Outside(word.incarnation, now, word.holds)

    def _prepare(self, word: Prepare, now: float) -> None:
        me = self.com.node
        if word.ballot < self.promised or (me in word.leaving and word.source != me):
            if me not in word.leaving:
                self._say(word.source, Refuse(me, self.com.lives.mine, word.version, word.ballot, self.promised), now)
            return
        if word.ballot > self.promised:
            self.com.tell(Changing(word.leaving))
        self.promised, self._promised_at = word.ballot, now
        self._freeze(word.leaving)
        promise = Promise(
            me,
            self.com.lives.mine,
            word.version,
            word.ballot,
            flush.report(self.com, word.leaving),
            tuple(sorted(r for r in self.com.unready if r not in self.com.handover.committed)),
            self.com.handover.holds,
            tuple(sorted(self.suspects)),
            tuple(sorted(self._shunned)),
            tuple(sorted((n, o.incarnation, o.holds) for n, o in self.outsiders.items())),
            self.accepted,
        )
        self._say(word.source, promise, now)

    def _freeze(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            if node != self.com.node:
                self.frozen.setdefault(node, [])

    def _count_promises(self, attempt: Attempt, now: float) -> None:
        stay = [n for n in self.view.members if n not in attempt.leaving]
        if attempt.decision is not None or len(stay) < self.view.majority:
            return
        if any(n not in attempt.promises for n in stay):
            return
        accepted = [p.accepted for p in attempt.promises.values() if p.accepted is not None]
        attempt.decision = (
            max(accepted, key=lambda a: a[0])[1] if accepted else attempt.next(self.com, stay, self.outsiders)
        )
        self._say_again(attempt, now)

    def _accept(self, word: Accept, now: float) -> None:
        me = self.com.node
        if word.ballot < self.promised:
            self._say(word.source, Refuse(me, self.com.lives.mine, word.version, word.ballot, self.promised), now)
            return
        self.promised, self._promised_at = word.ballot, now
        self.accepted = (word.ballot, word.decision)
        self._freeze(word.decision.left)
        self._say(word.source, Accepted(me, self.com.lives.mine, word.version, word.ballot), now)

    def _count_accepted(self, attempt: Attempt, now: float) -> None:
        if attempt.decision is None or len(attempt.accepted) < self.view.majority:
            return
        decision = attempt.decision
        for node in sorted({*self.view.members, *decision.view.members} - {self.com.node}):
            self._say(node, Decided(self.com.node, decision), now)
        self._decided(decision, now)

    def _decided(self, decision: Decision, now: float) -> None:
        view = decision.view
        if view.version <= self.view.version:
            return
        if view.life(self.com.node) != self.com.lives.mine:
            self._out(f"view {view.version} was decided without this node", view)
        elif view.version == self.view.version + 1:
            self._install(decision, now)
        else:
            raise BadMessage(f"view {view.version} was decided, but {self.com.node} is in view {self.view.version}")

    def _out(self, why: str, view: View) -> None:
        if self.com.node in self.unwanted:
            why = f"it has left in order: {why}"
        self.com.out = True
        self.com.tell(Out(why))

    def _install(self, decision: Decision, now: float) -> None:
        kept = [*self.later]
        for node, frames in self.frozen.items():
            if node not in decision.left:
                kept = [*frames, *kept]
        self.later, self.frozen = [], {}
        if self.promised.round <= 1:
            self._contended = 0
        self.promised, self.accepted, self.attempt = NONE, None, None
        self._round, self._wished_at = 0, None
        self.last = decision
        self.unwanted -= set(decision.left)
        self._shunned = (self._shunned | self.suspects & set(decision.left)) - set(decision.joined)
        for node in decision.refused:
            self._refused[node] = now + 20 * self.patience
            self.outsiders.pop(node, None)
        for node in decision.joined:
            self.outsiders.pop(node, None)
        flush.install(self.com, decision)
        self.sureness.keep(self.com.links.keys() - set(decision.joined))
        for node in decision.left:
            self.detector.forget(node)
        for node in decision.joined:
            self.detector.watch(node, now)
        self.suspects &= set(decision.view.members) - set(decision.joined)
        self._isolation()
        for event in kept:
            self.com.again(event, now)


def decision_of(view: View) -> Decision:
    """The decision that begins a view whose members begin together."""
    return msgspec.structs.replace(Decision(view), joined=view.members)


class Sureness:
    """Is this node a member of the current view, as far as it can know?

    Not while it hears too few. And after that, or after its machine stood still, it is not sure: the others may have
    gone on without it, and what they had sent before that may come only now. So it says ``Moved`` to all, once more,
    and is sure when a majority has acknowledged a frame that was sent since. Who goes on in a later view acknowledges
    nothing to a node that is not in it.
    """

    __slots__ = ("_com", "_doubts", "_member")

    def __init__(self, com: "Com", member: "Membership") -> None:
        self._com, self._member = com, member
        self._doubts: dict[Node, int] = {}  # the frame that each has to acknowledge

    @property
    def few(self) -> bool:
        """Are fewer than a majority heard?"""
        return not self._enough(self._member.suspects)

    @property
    def whole(self) -> bool:
        """It is sure."""
        links = self._com.links
        return self._enough(self._member.suspects | {n for n, f in self._doubts.items() if not links[n].has_brought(f)})

    def _enough(self, silent: Collection[Node]) -> bool:
        view = self._member.view
        return len(view.members) - len(silent) >= view.majority

    def doubt(self) -> None:
        for peer, link in self._com.links.items():
            if not link.queued:  # else what waits will do
                self._com.post(peer, Moved(self._com.view))
            self._doubts[peer] = link.last

    def keep(self, stay: Collection[Node]) -> None:
        """The view has changed; links to these are as they were. It may have been decided before there was a doubt."""
        self._doubts = {n: frame for n, frame in self._doubts.items() if n in stay}
