"""OBO: distributed objects that are ordered only where order matters.

These are the public names; the rooms behind them are in ARCHITECTURE.md.
"""

from framework.declare import Object, conflict_matrix, method
from framework.errors import (
    Aborted,
    BadRequest,
    DeadlineExceeded,
    DeclarationError,
    NoSuchMethod,
    NoSuchObject,
    OboError,
    OutcomeUnknown,
    RemoteError,
    ResourceExhausted,
    Unavailable,
)
from framework.version import __version__

__all__ = [
    "Aborted",
    "BadRequest",
    "DeadlineExceeded",
    "DeclarationError",
    "NoSuchMethod",
    "NoSuchObject",
    "Object",
    "OboError",
    "OutcomeUnknown",
    "RemoteError",
    "ResourceExhausted",
    "Unavailable",
    "__version__",
    "conflict_matrix",
    "method",
]
