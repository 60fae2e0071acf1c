"""Performing calls on one object alone, with the same chance and time for a call wherever it is performed."""

import asyncio
import copy
import inspect
import random
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import UUID

from framework.declare import Method, Object, performing
from framework.errors import BadRequest
from framework.footprint import Footprint


@dataclass(frozen=True, eq=False)
class Call:
    method: Method
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.method.name}({', '.join(map(repr, self.values))})"

    @property
    def footprint(self) -> Footprint:
        return self.method.footprint(self.values)


@dataclass(frozen=True, eq=False)
class Output:
    """What the caller gets to see: a value, or an exception by its type and message."""

    value: Any
    raised: bool = False

    def __str__(self) -> str:
        return f"raises {self.value}" if self.raised else f"returns {self.value!r}"

    def same(self, other: "Output") -> bool:
        return self.raised == other.raised and same(self.value, other.value)


class NeedsOrb(BaseException):  # not the method's error: its 'except Exception' must let it through
    """The method calls other objects; here are none."""


class _Environment:
    def __init__(self, role: str, where: str) -> None:
        self._chance = random.Random(role)
        self._where = where

    @property
    def orb(self) -> NoReturn:
        raise NeedsOrb(self._where)

    def now(self) -> float:
        return 1_700_000_000.0 + self._chance.randrange(1000)

    def random(self) -> float:
        return self._chance.random()

    def uuid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)


class Stage:
    """Where calls are performed. ``role`` names a call: in both orders it has the same chance and time."""

    def __init__(self, runner: asyncio.Runner | None) -> None:
        self._runner = runner

    def perform(self, on: Object, call: Call, role: str) -> Output:
        values = copy.deepcopy(call.values)
        with performing(_Environment(role, call.method.where)):
            try:
                result = getattr(on, call.method.name)(*values)
                if inspect.iscoroutine(result) and self._runner is not None:
                    result = self._runner.run(result, context=copy_context())
                # As the caller sees it: of the annotated type, and no longer a part of the object.
                return Output(call.method.unpack_result(call.method.pack_result(result)))
            except Exception as error:
                return Output(f"{type(error).__name__}: {error}", raised=True)


@contextmanager
def stage(with_loop: bool) -> Iterator[Stage]:
    if not with_loop:
        yield Stage(None)
        return
    if asyncio._get_running_loop() is not None:
        raise BadRequest("check_conflicts needs its own event loop for async methods: call it from a plain def")
    with asyncio.Runner() as runner:
        yield Stage(runner)


def state(of: Object) -> dict[str, Any]:
    """A copy of the ordinary attributes: the state."""
    return copy.deepcopy(vars(of))


def same(a: object, b: object) -> bool:
    """Equal; or written alike, as two NaN are."""
    return bool(a == b) or repr(a) == repr(b)
