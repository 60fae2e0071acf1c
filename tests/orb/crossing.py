"""Objects that wait for each other. A test sets ``met``: so many instances must have begun before any goes on."""

import threading

from framework import Object, method
from framework.errors import DeadlineExceeded

met = threading.Barrier(1)


class Crossing(Object):
    """Everything conflicts."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @method
    def f(self, other: str) -> None:
        met.wait(60)
        self.orb.object(other).g()
        self.done.append("f")

    @method
    def g(self) -> None:
        self.done.append("g")

    @method
    def tries(self, other: str, timeout: float) -> str:
        """Calls one that does not answer in time, and goes on."""
        try:
            self.orb.object(other).g.with_(timeout=timeout)()
        except DeadlineExceeded as error:
            return str(error)
        return "in time"
