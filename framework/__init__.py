"""OBO: distributed objects that are ordered only where order matters.

These are the public names; the rooms behind them are in ARCHITECTURE.md.
"""

from importlib.metadata import PackageNotFoundError, version

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

try:
    __version__ = version("obo")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0+unknown"

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
