"""Objects for the gateway: arguments that JSON does not have by itself; calls that last as long as a test wants."""

import asyncio
import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from framework import Object, method


@dataclass
class Point:
    x: int
    y: int = 0


class Leg(msgspec.Struct, frozen=True):
    start: Point
    when: dt.datetime


class Typed(Object):
    """Says what it was given."""

    @method(readonly=True)
    def kinds(
        self, data: bytes, when: dt.datetime, pair: tuple[int, str], leg: Leg, price: Decimal, tags: set[str]
    ) -> list[str]:
        """The types, as they arrive."""
        return [f"{type(v).__name__} {v!r}" for v in (data, when, pair, leg, price, sorted(tags))]

    @method(readonly=True)
    def back(self, number: UUID, by: dict[int, bytes], at: Point = Point(1)) -> tuple[UUID, dict[int, bytes], Point]:  # noqa: B008
        return number, by, at

    @method(readonly=True)
    def any(self, value: Any) -> Any:
        return value

    @method(readonly=True)
    def odd_number(self, which: str) -> list[float]:
        return [1.0, float(which)]


class Gate(Object):
    """Its instances wait until the test lets them go; nodes and test share a loop."""

    opened: asyncio.Event

    def __init__(self) -> None:
        self.passed = 0

    @method
    async def pass_(self) -> None:
        await Gate.opened.wait()
        self.passed += 1
