"""``self.orb`` of a method that is performed again: its calls are answered with what they brought the first time."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from framework.com.receipt import Receipt
from framework.errors import BadRequest, OboError
from framework.orb.durable.entries import Seen
from framework.orb.messages import Act, Ask
from framework.orb.nested import Nested
from framework.orb.outcome import Outcome
from framework.orb.proxy import Finish, Settle
from framework.orb.ways import AsyncWays, Ways


class PastCalls:
    def __init__(self, seen: Iterable[Seen], meanwhile: Callable[[int, int], None]) -> None:
        self._seen = deque(seen)
        self._meanwhile = meanwhile
        self._next = 1
        self._parts: dict[int, int] = {}  # calls that were sent and not received

    def begin(self, act: Act, settle: Settle) -> int:
        number, outcome = self._next, self._told()
        self._meanwhile(number, number + len(act.parts))
        settle(outcome)
        return number

    def send(self, act: Act) -> int:
        number, outcome = self._next, self._told()
        if isinstance(outcome, OboError):
            raise outcome
        self._parts[number] = len(act.parts)
        return number

    def collect(self, number: int, receipt: Receipt | None, timeout: float | None, settle: Settle) -> int:
        outcome = self._told()
        self._meanwhile(number, number + self._parts.pop(number, 1))
        settle(outcome)
        return number

    def give_up(self, number: int) -> None:
        pass

    def check_whole(self, asks: tuple[Ask, ...]) -> None:
        """It was refused, or it was not."""
        outcome = self._told()
        if isinstance(outcome, OboError):
            raise outcome

    def _told(self) -> Outcome | OboError:
        if not self._seen:
            raise BadRequest("it calls others more often than when it was performed")
        seen = self._seen.popleft()
        self._next = seen.next
        return seen.outcome


class PastOrb(Nested, Ways):
    def _now(self, start: Callable[[Settle], int], finish: Finish) -> Any:
        return finish(_answer(start))

    def _send_now(self, act: Act, finish: Callable[[int], Any]) -> Any:
        return finish(self._calls.send(act))

    def _send(self, act: Act, finish: Callable[[int], Any]) -> Any:
        return self._send_now(act, finish)


class PastAsyncOrb(Nested, AsyncWays):
    async def _now(self, start: Callable[[Settle], int], finish: Finish) -> Any:
        return finish(_answer(start))

    def _send_now(self, act: Act, finish: Callable[[int], Any]) -> Any:
        return finish(self._calls.send(act))

    async def _send(self, act: Act, finish: Callable[[int], Any]) -> Any:
        return self._send_now(act, finish)


def _answer(start: Callable[[Settle], int]) -> Outcome:
    told: list[Outcome | OboError] = []
    start(told.append)
    if isinstance(told[0], OboError):
        raise told[0]
    return told[0]
