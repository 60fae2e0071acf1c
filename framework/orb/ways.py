"""Ways to compute what is asked of several objects (P1 §2.4): atomic, alternative, and at least r of n.

``atomic``       all of them succeed, or nothing is done
``alternative``  the first that succeeds, in the order in which they are given; the others are undone, or never asked
``some``         at least r succeed, or nothing is done. All that succeed stay; with ``more=False`` no more than r do

In a method they are part of its transaction, in a block of a client part of that one; else they are a transaction of
their own. What fails is undone alone, and the rest goes on, as long as enough are left.

Who decides on ``atomic``, when it is a transaction of its own? Control is *centralized* if the client does, when it has
all answers; *distributed* if each object tells all others how it ended, and all come to the same outcome by that.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from framework.errors import BadRequest, RemoteError
from framework.orb import inputs
from framework.orb.outcome import Reply
from framework.orb.proxy import USUAL, Face, Request

R = TypeVar("R")
Control = Literal["centralized", "distributed"]


class Success(NamedTuple):
    """What one of several objects has done."""

    object: str
    value: Any


class _Whole(Face):
    def _undoable(self, requests: Sequence[Request]) -> None:
        """For methods: BadRequest if what these do could not be undone. A client's transaction looks by itself."""


class Ways(_Whole):
    """Of ``Orb``, and of ``self.orb`` in a method that is a plain def."""

    def atomic(self, *requests: Request, control: Control = "centralized") -> list[Any]:
        """All at once; their results, in the order of the requests. If one fails that is raised, and all are undone."""
        if _distributed(control):
            _check(len(requests), requests)
            done = self._by_votes(lambda: self._all(len(requests), requests))
        else:
            done = self.some(len(requests), *requests)
        return [one.value for one in done]

    def alternative(self, *requests: Request, at_once: bool = False) -> Success:
        """One after the other, until one succeeds. If none does, the last failure is raised. ``at_once``: all are asked
        at the same time, the first that succeeds wins, and the others are undone; for clients, outside of a block."""
        if at_once:
            _check(1, requests)
            return self._race(requests)
        return self.some(1, *requests, more=False)[0]

    def _race(self, requests: Sequence[Request]) -> Success:
        raise BadRequest(_NOT_AT_ONCE)

    def some(self, r: int, *requests: Request, more: bool = True) -> list[Success]:
        """At least ``r``. ``more``: all are asked at once, and all that succeed count; else they are asked one after
        the other, until r have succeeded."""
        _check(r, requests)
        self._undoable(requests)
        return self._wholly(lambda: (self._all if more else self._enough)(r, requests))

    def _wholly(self, act: Callable[[], R]) -> R:
        """A method is a transaction, or part of one, anyhow."""
        return act()

    def _by_votes(self, act: Callable[[], R]) -> R:
        raise BadRequest(_NOT_ALONE)

    def _all(self, r: int, requests: Sequence[Request]) -> list[Success]:
        return judged(r, requests, self.crec(self.pcast(*requests)))

    def _enough(self, r: int, requests: Sequence[Request]) -> list[Success]:
        found = Tally(r, len(requests))
        for request in requests:
            if found.missing:
                try:
                    found.add(request, self.call(request, USUAL))
                except RemoteError as error:
                    found.failed(error)
        return found.done


class AsyncWays(_Whole):
    """Of ``AsyncOrb``, and of ``self.orb`` in a method that is async."""

    async def atomic(self, *requests: Request, control: Control = "centralized") -> list[Any]:
        if _distributed(control):
            _check(len(requests), requests)
            done = await self._by_votes(lambda: self._all(len(requests), requests))
        else:
            done = await self.some(len(requests), *requests)
        return [one.value for one in done]

    async def alternative(self, *requests: Request, at_once: bool = False) -> Success:
        if at_once:
            _check(1, requests)
            return await self._race(requests)
        return (await self.some(1, *requests, more=False))[0]

    async def _race(self, requests: Sequence[Request]) -> Success:
        raise BadRequest(_NOT_AT_ONCE)

    async def some(self, r: int, *requests: Request, more: bool = True) -> list[Success]:
        _check(r, requests)
        self._undoable(requests)
        return await self._wholly(lambda: (self._all if more else self._enough)(r, requests))

    async def _wholly(self, act: Callable[[], Awaitable[R]]) -> R:
        return await act()

    async def _by_votes(self, act: Callable[[], Awaitable[R]]) -> R:
        raise BadRequest(_NOT_ALONE)

    async def _all(self, r: int, requests: Sequence[Request]) -> list[Success]:
        sent = self.pcast(*requests)
        return judged(r, requests, await self.crec(await sent if isinstance(sent, Awaitable) else sent))

    async def _enough(self, r: int, requests: Sequence[Request]) -> list[Success]:
        found = Tally(r, len(requests))
        for request in requests:
            if found.missing:
                try:
                    found.add(request, await self.call(request, USUAL))
                except RemoteError as error:
                    found.failed(error)
        return found.done


class Tally:
    """How many have succeeded, and whether enough still can."""

    def __init__(self, r: int, n: int) -> None:
        self._r, self._n = r, n
        self.done: list[Success] = []
        self._failures = 0

    @property
    def missing(self) -> bool:
        return len(self.done) < self._r

    def add(self, request: Request, value: Any) -> None:
        self.done.append(Success(request.object, value))

    def failed(self, error: RemoteError) -> None:
        """Raised as soon as too few are left: then all that is done is undone with the transaction."""
        self._failures += 1
        if self._n - self._failures < self._r:
            error.add_note(f"{self._r} of {self._n} had to succeed; {self._failures} have failed")
            raise error


def judged(r: int, requests: Sequence[Request], replies: Sequence[Reply]) -> list[Success]:
    """All replicas of an object say the same; if one does not, because it is being aborted, that one counts. Of those
    that do not, one that says why counts, and not one that did not come to its turn because of that."""
    told = {reply.object: reply for reply in sorted(replies, key=lambda reply: (not reply.ok, not reply.cancelled))}
    found = Tally(r, len(requests))
    for request in requests:
        reply = told[request.object]
        if reply.ok:
            found.add(request, reply.value)
        elif isinstance(reply.error, RemoteError):
            found.failed(reply.error)
        else:
            raise reply.error
    return found.done


_NOT_ALONE = (
    "control='distributed' inside of a transaction, or of a method: the root of that decides. Leave it out; it is for "
    "an atomic of a client that is a transaction of its own"
)


_NOT_AT_ONCE = (
    "alternative(at_once=True) inside of a transaction, or of a method: the rest could have seen what it undoes. "
    "Leave it out: they are asked one after the other"
)


def _distributed(control: object) -> bool:
    if control not in ("centralized", "distributed"):
        raise BadRequest(f"control={control!r:.40}: 'centralized' or 'distributed'")
    return control == "distributed"


def _check(r: int, requests: Sequence[Request]) -> None:
    for request in requests:
        if not isinstance(request, Request):
            raise inputs.no_request(request, "some")
    if not isinstance(r, int) or isinstance(r, bool) or not 1 <= r <= len(requests):
        raise BadRequest(f"{r!r:.40} of {len(requests)} requests: at least one, and no more than there are")
