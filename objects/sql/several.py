"""Statements of one program that travel together.

Whoever asks for something while others of the same connection do shares one call with them: one place in the order, one
request at each replica, one answer. Each statement succeeds or fails by itself, as if it had come alone; nothing else
is promised about them, least of all that they are performed together. ``Database.several`` performs them.

    statements that come in one turn of the loop  ->  one call, up to MOST  ->  to each caller what came of his

One that comes alone goes as it always did. While many are under way, others gather for a moment first: an answer wakes
those who waited for it one after the other.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from framework import BadRequest, Broken, OboError, Outdated, RemoteError
from objects.sql.errors import OperationalError
from objects.sql.result import Params, Result

MOST: Final = 24  # in a call: with more than 64 keys it would touch whole tables
LARGE: Final = 4096  # characters of a text, bytes of a value: such a statement goes alone
MANY: Final = 8  # under way
MOMENT: Final = 0.001  # seconds

_TOGETHER: Final = re.compile(r"\s*(?:insert|update|delete|select)\b", re.IGNORECASE)


class Each(msgspec.Struct, array_like=True, frozen=True):
    """What came of one of several statements: a result, or the name and the text of an error."""

    result: Result | None
    error: str = ""
    text: str = ""

    def value(self) -> Result:
        """RemoteError says what the statement raised."""
        if self.result is None:
            raise RemoteError(f"{self.error}: {self.text}")
        return self.result


def each(statements: Iterable[tuple[str, Params]], perform: Callable[[str, Params], Result]) -> list[Each]:
    """One after the other. Whatever one raises ends only that one. But ``Broken`` is the store's fault, ``Outdated``
    comes before anything is performed."""
    return [_one(sql, params, perform) for sql, params in statements]


def _one(sql: str, params: Params, perform: Callable[[str, Params], Result]) -> Each:
    try:
        return Each(perform(sql, params))
    except (Broken, Outdated):
        raise
    except Exception as error:
        return Each(None, type(error).__name__, str(error))


@lru_cache(4096)
def _may_share(sql: str) -> bool:
    return len(sql) <= LARGE and _TOGETHER.match(sql) is not None


def may_share(sql: str, params: Params) -> bool:
    """What changes the schema conflicts with everything, and what is large keeps others waiting: these go alone."""
    if not _may_share(sql):
        return False
    values = params.values() if isinstance(params, dict) else params
    return not any(type(value) in (str, bytes) and len(value) > LARGE for value in values)


Waiting = tuple[str, Params, "asyncio.Future[Result]"]


class Gatherer:
    """On one loop. ``alone`` and ``together`` begin a call and give a future of its result."""

    def __init__(
        self,
        alone: Callable[[str, Params], "asyncio.Future[Result]"],
        together: Callable[[Sequence[tuple[str, Params]]], "asyncio.Future[list[Each]]"],
    ) -> None:
        self.alone = alone
        self._together = together
        self._waiting: list[Waiting] = []
        self._under_way = 0

    def add(self, sql: str, params: Params) -> "asyncio.Future[Result]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._leave) if self._under_way <= MANY else loop.call_later(MOMENT, self._leave)
        self._waiting.append((sql, params, future))
        if len(self._waiting) == MOST:
            self._leave()
        return future

    def _leave(self) -> None:
        waiting, self._waiting = self._waiting, []
        wanted = [w for w in waiting if not w[2].done()]  # a caller may have gone meanwhile
        if len(wanted) > 1:
            self._begin(lambda: self._together([(sql, params) for sql, params, _ in wanted]), wanted)
        elif wanted:
            self._singly(wanted)

    def _begin(self, begin: Callable[[], "asyncio.Future[Any]"], those: Sequence[Waiting]) -> None:
        try:
            call = begin()
        except OboError as error:
            self._failed(error, those)
            return
        self._under_way += len(those)
        call.add_done_callback(lambda done: self._ended(done, those))

    def _singly(self, those: Sequence[Waiting]) -> None:
        for one in those:
            sql, params, _ = one
            self._begin(lambda sql=sql, params=params: self.alone(sql, params), [one])  # type: ignore[misc]

    def _ended(self, call: "asyncio.Future[Any]", those: Sequence[Waiting]) -> None:
        self._under_way -= len(those)
        if call.cancelled():
            for _, _, future in those:
                future.cancel()
        elif (error := call.exception()) is not None:
            self._failed(error, those)
        else:
            found = call.result()
            for (_, _, future), one in zip(those, found if isinstance(found, list) else (found,), strict=True):
                _tell(future, one)

    def _failed(self, error: BaseException, those: Sequence[Waiting]) -> None:
        """If it was refused, or ended at all replicas, nothing of it was performed: one statement is to blame, and each
        is told for itself."""
        ended = isinstance(error, RemoteError) and str(error).startswith(f"{OperationalError.__name__}:")
        if (isinstance(error, BadRequest) or ended) and len(those) > 1:
            self._singly([w for w in those if not w[2].done()])
            return
        for _, _, future in those:
            if not future.done():
                future.set_exception(error if len(those) == 1 else _copy(error))


def _copy(error: BaseException) -> BaseException:
    """Each caller raises one of his own: an exception keeps what is on its way."""
    return type(error)(str(error)) if isinstance(error, OboError) else error


def _tell(future: "asyncio.Future[Result]", one: Each | Result) -> None:
    if future.done():
        return
    try:
        future.set_result(one if isinstance(one, Result) else one.value())
    except RemoteError as error:
        future.set_exception(error)
