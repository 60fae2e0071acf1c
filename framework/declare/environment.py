"""What the framework gives to a method while it is performed: ``self.orb``, ``now``, ``random``, ``uuid``.

It belongs to the instance, not to the object: compatible instances run side by side on one object. So it is
kept in a context variable, which asyncio tasks and ``asyncio.to_thread`` carry along, and never in the
object's attributes, which are the state.
"""

from contextvars import ContextVar, Token
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


#: Of the running instance. Who performs many methods sets it by itself: ``performing`` takes as long as a short one.
CURRENT: ContextVar[Environment] = ContextVar("obo_environment")


def current(what: str) -> Environment:
    """The environment of the running instance."""
    found = CURRENT.get(None)
    if found is None:
        raise BadRequest(
            f"self.{what} is there only while a method is performed by the framework: not in __init__, nor "
            "on an object made by hand (in a test use 'with framework.declare.performing(environment):')"
        )
    return found


class performing:  # noqa: N801  # used as a function; a generator would cost as much as a short method
    """Around the performance of one method: ``with performing(environment):``."""

    __slots__ = ("_environment", "_token")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def __enter__(self) -> None:
        self._token: Token[Environment] = CURRENT.set(self._environment)

    def __exit__(self, *error: object) -> None:
        CURRENT.reset(self._token)
