"""Methods that every object has for the framework itself. Clients cannot call them (guard.py).

``tell`` and ``differs``: replicas say what they are, and hear that they differ. ``undecided`` and ``verdict``: replicas
of a ``Backed`` object agree on what becomes of a call that takes too long, or fails for a reason that may be the
store's (backed/verdicts.py). They conflict with no method of the class, so nobody waits for them; verdicts conflict
with each other, so that the first one is the same at all replicas.
"""

from typing import Final

import msgspec

from framework.declare import Method, Parameter
from framework.declare.marks import Mark
from framework.footprint import Relation

PREFIX: Final = "obo."
TELL: Final = "obo.tell"  # (seconds) -> what it is at moments of this time: (what was performed, fingerprint)
DIFFERS: Final = "obo.differs"  # (why) -> does it leave, to come back with a fresh state?

UNDECIDED: Final = "obo.undecided"  # (which call, how it is asked) -> where this replica stands, and why
VERDICT: Final = "obo.verdict"  # (which call, which of its parts, is it performed?, why not)

Sample = tuple[int, str]


class Which(msgspec.Struct, frozen=True, array_like=True):
    """A call that is to be decided on. ``known``: an invocation whose reply tells that it is over: its own, or that of
    the first call of a convoy. ``round``: how often it was decided on before, for another part of it."""

    invocation: str
    known: str
    round: int = 0


def _own(name: str, result: object, *parameters: Parameter) -> Method:
    return Method(f"Object.{name}", name, Mark(True, None), parameters, result, True)


METHODS: Final = {
    TELL: _own(TELL, list[Sample], Parameter("seconds", float)),
    DIFFERS: _own(DIFFERS, bool, Parameter("why", str)),
    UNDECIDED: _own(UNDECIDED, tuple[str, str], Parameter("which", Which), Parameter("how", str)),
    VERDICT: _own(
        VERDICT,
        bool,
        Parameter("which", Which),
        Parameter("part", int),
        Parameter("keep", bool),
        Parameter("why", str),
    ),
}


def with_verdicts(relation: Relation) -> Relation:
    """Return the relation of a class with that of verdicts."""
    pairs = [(a, b) for a, row in relation.rows.items() for b in row]
    return Relation([*pairs, (VERDICT, VERDICT)], relation.intentions)
