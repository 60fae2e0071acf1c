"""Errors in the words of gRPC: each has one status; what else there is to know goes as ErrorDetail."""

import grpc

from framework.errors import (
    Aborted,
    BadRequest,
    DeadlineExceeded,
    NoSuchMethod,
    NoSuchObject,
    OboError,
    OutcomeUnknown,
    RemoteError,
    ResourceExhausted,
    Unavailable,
)
from framework.net.wire.orb_pb2 import ErrorDetail

#: The table of proto/orb.proto. The nearest class above counts; without any it is a fault of the framework.
STATUS: dict[type[OboError], grpc.StatusCode] = {
    BadRequest: grpc.StatusCode.INVALID_ARGUMENT,
    NoSuchObject: grpc.StatusCode.NOT_FOUND,
    NoSuchMethod: grpc.StatusCode.UNIMPLEMENTED,
    RemoteError: grpc.StatusCode.UNKNOWN,
    Aborted: grpc.StatusCode.ABORTED,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
    ResourceExhausted: grpc.StatusCode.RESOURCE_EXHAUSTED,
    DeadlineExceeded: grpc.StatusCode.DEADLINE_EXCEEDED,
    OutcomeUnknown: grpc.StatusCode.DATA_LOSS,
}

#: In the trailing metadata: the name of the error, and an ErrorDetail.
ERROR, DETAIL = "obo-error", "obo-error-bin"

# In bytes: all metadata of an answer together must stay below gRPC's 8 KiB. Details are written with up to three bytes
# for one, binary metadata with four for three.
_TEXT, _TRACEBACK = 500, 2500

_HAPPENED = {True: ErrorDetail.YES, False: ErrorDetail.NO, None: ErrorDetail.UNKNOWN}


def status_of(error: OboError) -> grpc.StatusCode:
    return next((STATUS[c] for c in type(error).__mro__ if c in STATUS), grpc.StatusCode.INTERNAL)


def detail_of(error: OboError) -> ErrorDetail:
    found = ErrorDetail(error=type(error).__name__, text=shown(error), happened=_HAPPENED[error.happened])
    notes = getattr(error, "__notes__", ())
    if isinstance(error, RemoteError) and notes:  # without, it is the framework that speaks of a result
        name, _, text = str(error).partition(": ")
        found.remote_error, found.remote_text = _cut(name, 100), _cut(text, _TEXT)
        found.remote_traceback = _bytes("\n".join(notes))[-_TRACEBACK:].decode(errors="ignore")
    elif isinstance(error, DeadlineExceeded):
        found.answered.extend(str(r.replica) for r in error.replies)
    return found


def shown(error: OboError) -> str:
    """The message, for the details of a status."""
    return _cut(str(error), _TEXT)


def trailing(error: OboError) -> tuple[tuple[str, str | bytes], ...]:
    return (ERROR, type(error).__name__), (DETAIL, detail_of(error).SerializeToString())


def _cut(text: str, most: int) -> str:
    data = _bytes(text)
    return data.decode() if len(data) <= most else f"{data[:most].decode(errors='ignore')}..."


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")  # protobuf takes no lone surrogates
