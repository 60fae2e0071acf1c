"""OBO: distributed objects that are ordered only where order matters.

These are the public names; the rooms behind them are in ARCHITECTURE.md. What needs gRPC is imported when it is first
used: declaring and testing objects does without.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
)
from framework.footprint import Footprint, Keys, Mode
from framework.version import __version__

if TYPE_CHECKING:
    from framework.orb.client import ALL, FIRST, AsyncOrb, Orb, connect, quorum

_LATE = dict.fromkeys(("ALL", "FIRST", "AsyncOrb", "Orb", "connect", "quorum"), "framework.orb.client")


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


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
    "__version__",
    "canonical",
    "conflict_matrix",
    "connect",
    "declaration",
    "method",
    "performing",
    "quorum",
]
