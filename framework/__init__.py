"""OBO: distributed objects that are ordered only where order matters.

These are the public names; the rooms behind them are in docs/architecture.md. Each is imported when it is first used:
so declaring and testing objects does without gRPC, and ``obo`` deals with Ctrl-C before it imports anything else.
"""

from importlib import import_module

TYPE_CHECKING = False  # that of typing is not imported for it: this is the first that a command does
if TYPE_CHECKING:
    from typing import Any

    from framework.declare import (
        LATER,
        Backed,
        Object,
        Place,
        Recalled,
        Touched,
        canonical,
        conflict_matrix,
        declaration,
        method,
        performing,
    )
    from framework.errors import (
        Aborted,
        BadRequest,
        Broken,
        DeadlineExceeded,
        DeclarationError,
        Interrupted,
        NoSuchMethod,
        NoSuchObject,
        OboError,
        OutcomeUnknown,
        Outdated,
        PermissionDenied,
        RemoteError,
        ResourceExhausted,
        Unauthenticated,
        Unavailable,
        Unreadable,
    )
    from framework.footprint import Footprint, Keys, Mode
    from framework.orb.client import ALL, FIRST, AsyncOrb, Orb, connect, quorum
    from framework.version import __version__

_PLACES = ("errors", "version", "footprint", "declare", "orb.client")


def __getattr__(name: str) -> "Any":
    for place in _PLACES if name in __all__ else ():
        module = import_module(f"framework.{place}")
        if hasattr(module, name):
            value = globals()[name] = getattr(module, name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ALL",
    "FIRST",
    "LATER",
    "Aborted",
    "AsyncOrb",
    "Backed",
    "BadRequest",
    "Broken",
    "DeadlineExceeded",
    "DeclarationError",
    "Footprint",
    "Interrupted",
    "Keys",
    "Mode",
    "NoSuchMethod",
    "NoSuchObject",
    "Object",
    "OboError",
    "Orb",
    "OutcomeUnknown",
    "Outdated",
    "PermissionDenied",
    "Place",
    "Recalled",
    "RemoteError",
    "ResourceExhausted",
    "Touched",
    "Unauthenticated",
    "Unavailable",
    "Unreadable",
    "__version__",
    "canonical",
    "conflict_matrix",
    "connect",
    "declaration",
    "method",
    "performing",
    "quorum",
]
