"""What the framework gives to a method while it is performed: ``self.orb``, ``now``, ``random``, ``uuid``.

It belongs to the instance, not to the object: compatible instances run side by side on one object. So it is
kept in a context variable, which asyncio tasks and ``asyncio.to_thread`` carry along, and never in the
object's attributes, which are the state.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol
from uuid import UUID

from framework.errors import BadRequest


class Environment(Protocol):
    """The same on every replica that performs the same request."""

    @property
    def orb(self) -> Any: ...
    def now(self) -> float: ...
    def random(self) -> float: ...
    def uuid(self) -> UUID: ...


_CURRENT: ContextVar[Environment] = ContextVar("obo_environment")


def current(what: str) -> Environment:
    """The environment of the running instance."""
    found = _CURRENT.get(None)
    if found is None:
        raise BadRequest(
            f"self.{what} is there only while a method is performed by the framework: not in __init__, nor "
            "on an object made by hand (in a test use 'with framework.declare.performing(environment):')"
        )
    return found


@contextmanager
def performing(environment: Environment) -> Iterator[None]:
    """Around the performance of one method."""
    token = _CURRENT.set(environment)
    try:
        yield
    finally:
        _CURRENT.reset(token)
