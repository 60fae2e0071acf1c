"""Whose state counts when nobody is left who has one: the replicas are compared before anything is overwritten.

After a crash of all the view names the replica that begins, and the state that it is to begin with: that of the longest
life (framework.com.view). The one that begins first asks all members that hold a state of the object for its digest.
Digests can only be compared of states in which the same was performed: so each holder asks the others what they have
performed and it has not, performs that on its own state, takes the digest, and takes the effect back. Which requests
are in a state is one number, its position (position.py); so it is known whether this has come out at the same place.

Those are voters who come to the position of the most advanced one. ``judged`` says whose state counts. docs/durable.md
says why a minority cannot win by this, and why nothing that was acknowledged is lost.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from framework.com.convoy import split
from framework.com.core import Com
from framework.com.handed import read_part
from framework.com.messages import Request
from framework.com.replies import Replies
from framework.declare.portable.classes import NotPortable
from framework.errors import BadMessage, BadRequest, Unavailable, Unreadable
from framework.ids import TRAN, Invocation, Node, Replica, node_of, object_of, replica
from framework.orb.doubting import Doubting
from framework.orb.durable.entries import Seen
from framework.orb.held import Held, Once
from framework.orb.moving import Fetcher
from framework.orb.position import with_all
from framework.orb.replaced import DIFFERS, UNREADABLE

log = logging.getLogger(__name__)

SAME: Final = "same"  # a verdict, beside the kinds of replaced states
WAIT: Final = 10.0  # seconds for which a question waits for a digest; then it is asked again
MOST: Final = 1 << 20  # bytes of arguments in one answer, if there is more than one request in it


class Word(msgspec.Struct, array_like=True, frozen=True):
    """What a holder says of its state."""

    replica: Replica
    version: int  # of the last view of its life
    performed: int
    position: int | None = None  # with all that any holder has performed; None: it is not known
    digest: str = ""  # of the state then
    why: str = ""  # there is no digest
    damaged: bool = False  # the state cannot be read


class Question(msgspec.Struct, array_like=True, frozen=True):
    """``list``: which requests were performed last. ``calls``: these requests. ``word``: a ``Word``, after asking these
    nodes. ``verdict``: what has come out for this replica."""

    what: str
    calls: tuple[Invocation, ...] = ()
    nodes: tuple[Node, ...] = ()
    verdict: str = ""
    text: str = ""


class Verdict(NamedTuple):
    source: Replica | None  # whose state counts; None: no replica begins
    text: str  # what was found; empty if there is nothing to say
    each: Mapping[Replica, str]  # SAME, DIFFERS, UNREADABLE; not in it: not compared


class Refused(Exception):
    """No replica begins: the text says why, and what an operator may do."""


_encode = msgspec.msgpack.Encoder().encode
_question = msgspec.msgpack.Decoder(Question)
_word = msgspec.msgpack.Decoder(Word)
_names = msgspec.msgpack.Decoder(list[Invocation])
_calls = msgspec.msgpack.Decoder(list[tuple[Request, tuple[Seen, ...]]])


def judged(words: Sequence[Word], declared: int) -> Verdict:
    """``declared``: how many replicas the object has, there or not."""
    readable = [w for w in words if not w.damaged]
    broken = {w.replica: UNREADABLE for w in words if w.damaged}
    torn = "; ".join(f"{w.replica} cannot be read ({w.why})" for w in words if w.damaged)
    if not readable:
        return Verdict(None, f"no state of it can be read: {torn}", broken)
    best = max(readable, key=_rank)
    voters = [w for w in readable if w.digest and best.position is not None and w.position == best.position]
    apart = [f"{w.replica} was not compared ({w.why or 'it lacks too much'})" for w in readable if w not in voters]
    if not voters:
        return Verdict(best.replica, _joined(torn, *(apart if len(readable) > 1 else ())), broken)
    digest, count = Counter(w.digest for w in voters).most_common(1)[0]
    if count < len(voters) and 2 * count <= declared:
        said = ", ".join(f"{w.replica} {w.digest[:12]}" for w in sorted(voters, key=_rank))
        differs = f"its replicas differ, and no majority of {declared} agrees: {said}"
        return Verdict(None, _joined(differs, torn, *apart), broken)
    usual = [w for w in voters if w.digest == digest]
    odd = sorted(w.replica for w in voters if w.digest != digest)
    each = broken | dict.fromkeys((w.replica for w in usual), SAME) | dict.fromkeys(odd, DIFFERS)
    differs = f"{' and '.join(odd)} DIFFERS from the {count} others, which agree" if odd else ""
    return Verdict(max(usual, key=_rank).replica, _joined(differs, torn, *apart), each)


def _rank(word: Word) -> tuple[int, int, Replica]:
    """As in framework.com.view, ``Directory.seeds``."""
    return word.version, word.performed, word.replica


def _joined(*texts: str) -> str:
    return "; ".join(text for text in texts if text)


class Auditing:
    def __init__(self, com: Com, held: dict[Replica, Held], fetcher: Fetcher, doubting: Doubting) -> None:
        self._com = com
        self._held = held
        self._fetcher = fetcher
        self._doubting = doubting
        self._words: dict[Replica, tuple[Held, frozenset[Node], asyncio.Task[Word]]] = {}
        self._verdicts: dict[Replica, tuple[int, Verdict]] = {}  # and the view in which it was found
        self.comparing: set[Replica] = set()
        self.found: dict[Replica, str] = {}  # for people: what was found, by the replica of this node
        self.refused: dict[Replica, str] = {}  # the same, where nobody begins

    def close(self) -> None:
        for _, _, task in self._words.values():
            task.cancel()

    # the replica that begins

    async def source(self, mine: Replica, wanted: Replica) -> Replica:
        """Whose state this replica begins with: ``wanted``, unless a majority says otherwise. Refused if nobody can
        know. Unavailable: ask again."""
        view = self._com.view
        if object_of(mine) == TRAN or len(self._com.directory.find(object_of(mine)).replicas) == 1:
            return wanted if not self._is_damaged(mine) else self._refuse(mine, self._held[mine].damaged)
        known = self._verdicts.get(mine)
        if known is None or known[0] != view:
            self.comparing.add(mine)
            try:
                verdict = await self._compare(mine)
            finally:
                self.comparing.discard(mine)
            if self._com.view != view:
                raise Unavailable("the view has changed meanwhile")
            self._verdicts[mine] = view, verdict
            self._tell(mine, verdict)
        verdict = self._verdicts[mine][1]
        if verdict.source is None:
            self._refuse(mine, verdict.text)
        assert verdict.source is not None
        self.refused.pop(mine, None)
        return verdict.source

    def _is_damaged(self, mine: Replica) -> bool:
        return mine in self._held and bool(self._held[mine].damaged)

    def _refuse(self, mine: Replica, why: str) -> Replica:
        name = object_of(mine)
        self.refused[mine] = (
            f"{name} does not begin: {why}. Nothing was overwritten. Stop all nodes and copy their directories; find "
            f"out which state is right, move the stores of {name} at the other nodes away, and start all: they get "
            "this one (docs/operations.md, A replica does not come back)"
        )
        raise Refused(self.refused[mine])

    async def _compare(self, mine: Replica) -> Verdict:
        name, here = object_of(mine), self._com.node
        nodes = tuple(node_of(r) for r in self._com.directory.find(name).replicas)
        nodes = tuple(n for n in nodes if n in self._com.lives.view.members)
        others = [n for n in nodes if n != here]
        asked = _encode(Question("word", nodes=nodes))
        said = await asyncio.gather(*(self._fetcher.luggage(mine, n, asked) for n in others))
        words = [_decoded(_word, data, mine) for data in said if data is not None]
        if mine in self._held:
            words.append(await self._word(mine, frozenset(nodes)))
        if not words:
            raise Unavailable(f"nobody holds a state of {name} any more")
        verdict = judged(words, len(self._com.directory.find(name).replicas))
        for word in words:
            told = Question("verdict", verdict=verdict.each.get(word.replica, ""), text=verdict.text)
            if word.replica == mine:
                self._hear(mine, told)
            elif verdict.source is not None:
                await self._fetcher.luggage(mine, node_of(word.replica), _encode(told))
        return verdict

    def _tell(self, mine: Replica, verdict: Verdict) -> None:
        if verdict.source is None:
            log.critical("%s DOES NOT BEGIN: %s", object_of(mine), verdict.text)
        elif verdict.text:
            log.error("%s begins with the state of %s: %s", object_of(mine), verdict.source, verdict.text)
        else:
            log.info("%s: the %d states that are held are the same", object_of(mine), len(verdict.each))
        if verdict.text:
            self.found[mine] = verdict.text

    # a replica that holds a state

    async def answer(self, mine: Replica, question: bytes) -> bytes:
        """To another node. There is a state of this replica here, of an earlier life."""
        asked = _decoded(_question, question, mine)
        self._doubting.check_whole(mine)
        held = self._held[mine]
        if asked.what == "list":
            return _encode([r.invocation for r in _single(held)])
        if asked.what == "calls":
            return self._some(held, asked.calls)
        if asked.what == "verdict":
            self._hear(mine, asked)
            return b""
        return _encode(await self._word(mine, frozenset(asked.nodes)))

    def _hear(self, mine: Replica, told: Question) -> None:
        held = self._held[mine]
        if told.verdict == held.verdict:
            return
        held.verdict = told.verdict
        if told.verdict == DIFFERS:
            log.error("%s DIFFERS from the majority of its replicas: %s. Its state is kept", mine, told.text)
            self.found[mine] = told.text

    def _some(self, held: Held, names: Sequence[Invocation]) -> bytes:
        """The first of these that are here; at least one, if there is one."""
        wanted, size = set(names), 0
        found: list[Once] = []
        for request in _single(held):
            if request.invocation in wanted and (not found or size + len(request.args) <= MOST):
                size += len(request.args)
                found.append((request, held.seen.get(request.invocation, ())))
        return _encode(found)

    async def _word(self, mine: Replica, nodes: frozenset[Node]) -> Word:
        """What this node says of its own state. A digest may take long: it is taken once."""
        self._doubting.check_whole(mine)
        held = self._held[mine]
        known = self._words.get(mine)
        if known is None or known[0] is not held or known[1] != nodes or _failed(known[2]):
            task = asyncio.ensure_future(self._taken(mine, held, nodes))
            known = self._words[mine] = held, nodes, task
        done, _ = await asyncio.wait((known[2],), timeout=WAIT)
        if not done:
            raise Unavailable(f"{mine} is still reading its state, to compare it")
        return known[2].result()

    async def _taken(self, mine: Replica, held: Held, nodes: Iterable[Node]) -> Word:
        word = Word(mine, *held.holding[1:])
        if held.damaged:
            return msgspec.structs.replace(word, why=held.damaged, damaged=True)
        if held.digest is None or held.position is None:
            return msgspec.structs.replace(word, why="it was written by an older version, or cannot be compared")
        more = await self._lacking(mine, held, sorted(set(nodes) - {self._com.node}))
        position = with_all(held.position, (request.invocation for request, _ in more))
        word = msgspec.structs.replace(word, position=position)
        try:
            digest = await asyncio.to_thread(held.digest, more)
        except Unreadable as error:
            return msgspec.structs.replace(word, why=str(error), damaged=True)
        except NotPortable as error:
            return msgspec.structs.replace(word, why=str(error))
        except BadRequest as error:  # what ended well at another replica raises here: that is a difference
            log.error("%s: what others have performed fails on its state: %s", mine, error)
            return msgspec.structs.replace(word, digest=f"raises: {error}"[:200])
        if digest is None:
            return msgspec.structs.replace(word, position=held.position, why="its class does not tell a digest")
        return msgspec.structs.replace(word, digest=digest)

    async def _lacking(self, mine: Replica, held: Held, others: Iterable[Node]) -> list[Once]:
        """What others have performed, and is not in this state, in an order in which it may be performed."""
        has = {r.invocation for r in _single(held)}
        replies = Replies()
        if held.part:
            replies.adopt(read_part(held.part).replies)
        found: list[Once] = []
        for node in others:
            said = await self._fetcher.luggage(mine, node, _encode(Question("list")))
            names = _decoded(_names, said, mine) if said is not None else []
            left = [n for n in names if n not in has and n not in replies]
            while left:
                said = await self._fetcher.luggage(mine, node, _encode(Question("calls", tuple(left))))
                some = _decoded(_calls, said, mine) if said is not None else []
                if not some:
                    raise Unavailable(f"{replica(object_of(mine), node)} does not say what it has performed")
                found += some
                got = {request.invocation for request, _ in some}
                has |= got
                left = [n for n in left if n not in got]
        return found


def _failed(task: "asyncio.Task[Word]") -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _single(held: Held) -> Iterable[Request]:
    return chain.from_iterable(map(split, held.done))


def _decoded(decoder: Any, data: bytes, mine: Replica) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessage(f"what another node says of the states of {object_of(mine)} cannot be used: {error}") from None
