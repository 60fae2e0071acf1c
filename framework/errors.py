"""The one exception tree. An error says whose fault it was and whether the call happened.

``happened`` is True, False, or None when nobody can know: retry only with the same request id.
"""

from collections.abc import Sequence
from typing import Any


class OboError(Exception):
    """Root of every error this framework raises on purpose."""

    happened: bool | None = False


class DeclarationError(OboError, TypeError):
    """A class says something that cannot be meant. Raised when the class is made."""


class BadRequest(OboError, ValueError):
    """The caller's fault: a wrong argument, name or option. The call did not happen."""


class NoSuchObject(BadRequest):
    """No object of this name is declared."""


class NoSuchMethod(BadRequest):
    """The object has no such method, or it is not decorated with ``@method``."""


class BadMessage(OboError):
    """What came from a peer is not a message of this protocol. Nothing of it was taken over."""


class BadTrace(OboError):
    """A trace file cannot be read: the error names file, line and field."""


class RemoteError(OboError):
    """The method raised. It left no trace in the object's state; the call did happen."""

    happened = True


class Unavailable(OboError):
    """Nobody who could perform the call can be reached."""


class ResourceExhausted(Unavailable):
    """A bounded queue is full. The call did not happen; try again later."""


class Unauthenticated(OboError):
    """Nobody knows who the caller is: no token, a wrong one, or a wrong certificate. The call did not happen."""


class PermissionDenied(OboError):
    """The caller is known, and this is not for it. The call did not happen."""


class Aborted(OboError):
    """The call was taken back. Retry is right."""


class Outdated(Aborted):
    """What was said about the footprint of a call does not hold any more. It was not performed; it is judged again."""


class Broken(OboError):
    """The store of a replica does not work now. Not the fault of the call; other replicas may perform it."""


class Unreadable(Broken):
    """What the store of a replica holds cannot be read: it is torn, or is none of its kind. A retry does not help. The
    framework keeps it, and the replica gets its state from the others."""


class Interrupted(Broken):
    """A call was ended from outside, in the middle, and nothing of it is left. By itself it says nothing about the
    call, nor about the store."""


class DeadlineExceeded(OboError):
    """The deadline passed before the receipt was complete. ``replies`` are those that came in time."""

    happened = None
    replies: Sequence[Any] = ()


class OutcomeUnknown(OboError):
    """The call may have happened. Retry only with the same request id. Of a transaction: ``transaction.outcome()`` asks
    what became of it."""

    happened = None
    transaction: Any = None
