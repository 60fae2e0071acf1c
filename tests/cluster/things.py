"""Objects for tests over processes: some methods conflict, some do not, some call others, some raise."""

import asyncio
import random
import sys

from framework import Object, conflict_matrix, method


@conflict_matrix(
    write=("write", "lines", "fail", "write_if", "linger"),
    linger=("linger", "lines", "fail", "write_if"),
    write_if=("write_if", "lines", "fail"),
    fail=("fail", "lines"),
    count=("tally",),
)
class Journal(Object):
    """``write`` tells its order; ``count`` does not, and so conflicts with nothing but being looked at."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.counts: dict[str, int] = {}

    @method
    def write(self, line: str) -> int:
        self.written.append(line)
        return len(self.written)

    @method
    async def write_if(self, line: str, even: bool) -> bool:
        if (len(self.written) % 2 == 0) is even:
            self.written.append(line)
            return True
        return False

    @method
    async def linger(self, line: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.written.append(line)

    @method
    def fail(self, line: str) -> None:
        self.written.append(line)
        raise RuntimeError(f"{line} on purpose")

    @method(key="tag")
    def count(self, tag: str) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1

    @method(key="tag", readonly=True)
    def tally(self, tag: str) -> int:
        return self.counts.get(tag, 0)

    @method(readonly=True)
    def lines(self) -> list[str]:
        return list(self.written)


@conflict_matrix(book=("booked",), fail=("booked",))
class Agent(Object):
    """Calls the journal and the bank. ``book`` is compatible with itself: instances overlap while they wait."""

    def __init__(self) -> None:
        self.done: dict[str, int] = {}

    @method(key="tag")
    def book(self, tag: str) -> None:
        self.orb.object("journal").count(tag)
        self.orb.object("bank").deposit(tag, 1)
        self.done[tag] = self.done.get(tag, 0) + 1

    @method(key="tag")
    async def fail(self, tag: str) -> None:
        self.done[tag] = -1
        await self.orb.object("journal").count(tag)
        raise RuntimeError("on purpose")

    @method(key="tag", readonly=True)
    def booked(self, tag: str) -> int:
        return self.done.get(tag, 0)


class Chancy(Object):
    """Breaks the rules on purpose: its replicas do different things."""

    def __init__(self) -> None:
        self.value = 0.0

    @method
    def roll(self) -> None:
        self.value = random.random()


class Shy(Object):
    """Cannot be made where a node serves it."""

    def __init__(self) -> None:
        if "serve" in sys.argv:
            raise RuntimeError("not in a process of its own")

    @method
    def say(self) -> None: ...
