"""From responses to values and errors: whose fault it was, and whether it happened."""

import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from framework import errors
from framework.com.events import Response
from framework.declare import Method
from framework.declare.codec import CANNOT_WRITE, Codec
from framework.errors import BadMessage, DeadlineExceeded, OboError, RemoteError
from framework.ids import Replica, object_of

#: Frames of a remote traceback that travel: enough to find the line, not enough to fill a log.
DEEPEST = 20
CANCELLED = "cancelled before it was performed"  # its transaction was aborted, or its caller does not wait


class Outcome(NamedTuple):
    """What came of a transmission: the responses there are, and whether they complete the receipt; if not, why."""

    responses: tuple[Response, ...]
    complete: bool
    why: str = ""


class Failure(msgspec.Struct, array_like=True, frozen=True):
    """A method raised. No local variables: they are nobody's business."""

    error: str
    text: str
    traceback: str = ""
    whole: bool = False  # it was the root of a transaction: nothing is left of what it did, at any object


_failure = msgspec.msgpack.Decoder(Failure)
_any = Codec(Any)
_encode = msgspec.msgpack.Encoder().encode


def failure(error: BaseException, whole: bool = False) -> bytes:
    """The body of a response that says what was raised. The first frame is the framework's own."""
    inner = error.__traceback__.tb_next if error.__traceback__ else None
    lines = traceback.format_exception(type(error), error, inner, limit=-DEEPEST)
    return _encode(Failure(type(error).__name__, str(error), "".join(lines), whole))


def stopped(where: str) -> errors.Aborted:
    """What a method is told, or says, that nobody waits for."""
    return errors.Aborted(f"{where}: stopped; its caller has cancelled it, or its transaction was aborted")


def named(error: str, text: str) -> OboError:
    """The error of the framework that has this name."""
    found = getattr(errors, error, None)
    if isinstance(found, type) and issubclass(found, OboError):
        return found(text)
    return OboError(f"{error}: {text}")


def is_outdated(responses: Sequence[Response]) -> bool:
    """Did a replica, and so all of them, refuse to perform it on what was said about its footprint?"""
    for response in responses:
        if response.status == "error":
            try:
                return _failure.decode(response.body).error == errors.Outdated.__name__
            except msgspec.DecodeError:
                return False
    return False


class Reply:
    """The response of one replica. ``value`` is the result, or raises what the method raised."""

    def __init__(self, response: Response, method: Method | None) -> None:
        self.replica: Replica = response.replica
        self._response = response
        self._method = method

    def __repr__(self) -> str:
        return f"Reply({self.replica}, {self._response.status})"

    @property
    def object(self) -> str:
        return object_of(self.replica)

    @property
    def ok(self) -> bool:
        return self._response.status == "ok"

    @property
    def cancelled(self) -> bool:
        """Return whether its replica did not perform the call, because another one had failed and it was told so."""
        return not self.ok and CANCELLED in str(self.error)

    @property
    def value(self) -> Any:
        if not self.ok:
            raise self.error
        if self._method is not None:
            return self._method.unpack_result(self._response.body)
        try:
            return _any.unpack(self._response.body)
        except CANNOT_WRITE as fault:
            raise BadMessage(f"the result from {self.replica} is no msgpack: {fault}") from None

    @property
    def error(self) -> OboError:
        """What the method raised, or why there is no result."""
        status, body = self._response.status, self._response.body
        if status != "error":
            return named(status, f"{self.replica}: {body.decode(errors='replace')}")
        try:
            found = _failure.decode(body)
        except msgspec.DecodeError:
            return RemoteError(f"{self.replica}: {body!r:.200}")
        if found.error == errors.Outdated.__name__:
            return errors.Outdated(f"{self.replica}: {found.text}")
        if found.error == errors.Aborted.__name__ and found.whole:
            return errors.Aborted(f"{self.replica}: {found.text}")
        error = RemoteError(f"{found.error}: {found.text}")
        error.add_note(f"raised at {self.replica}:\n{found.traceback.rstrip()}")
        return error


def replies(outcome: Outcome, methods: Mapping[str, Method | None], what: str) -> Sequence[Reply]:
    """The replies that completed the receipt, the most significant one last; DeadlineExceeded with those there are."""
    got = [Reply(r, methods.get(object_of(r.replica))) for r in outcome.responses]
    if not outcome.complete:
        heard = ", ".join(r.replica for r in got) or "nobody"
        why = f". {outcome.why}" if outcome.why else ""
        error = DeadlineExceeded(f"{what}: the receipt was not complete at the deadline; answered: {heard}{why}")
        error.replies = got
        raise error
    return got
