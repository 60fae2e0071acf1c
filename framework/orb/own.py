"""Two methods that every object has for the framework itself: replicas tell what they are, and hear that they differ.

They conflict with nothing, so nobody waits for them. Clients cannot call them (guard.py).
"""

from typing import Final

from framework.declare import Method, Parameter
from framework.declare.marks import Mark

PREFIX: Final = "obo."
TELL: Final = "obo.tell"  # (seconds) -> what it is at moments of this time: (what was performed, fingerprint)
DIFFERS: Final = "obo.differs"  # (why) -> does it leave, to come back with a fresh state?

Sample = tuple[int, str]


def _own(name: str, parameter: Parameter, result: object) -> Method:
    return Method(f"Object.{name}", name, Mark(True, None), (parameter,), result, True)


METHODS: Final = {
    TELL: _own(TELL, Parameter("seconds", float), list[Sample]),
    DIFFERS: _own(DIFFERS, Parameter("why", str), bool),
}
