"""Bounds on what one client can make a node keep. Who exceeds one gets an error that names it; the others go on."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from framework.errors import BadRequest, ResourceExhausted
from framework.net.options import MAX_MESSAGE, MOST_EVER
from framework.orb.messages import Act, Answer, Refused, ToClient, encode

#: Of a message, for what stands around arguments and results.
MARGIN = 1 << 16
_AROUND = 16  # of a packet, around each of its messages, and to spare
DEEPEST = 64  # lists in lists in maps ...
_FEW = 60  # values: fewer than would make it too deep
IN_FLIGHT, IN_FLIGHT_NODE = 10_000, 100_000

_NESTED = (list, dict)
_LONG = (str, bytes, bytearray, memoryview)
#: The bytes with which msgpack begins a list or map.
_BEGINS = bytes((*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF))


class Limits(msgspec.Struct, frozen=True):
    max_message: int = MAX_MESSAGE
    in_flight: int = IN_FLIGHT  # calls of one client that are not answered
    in_flight_node: int = IN_FLIGHT_NODE  # and of all clients of a node

    @property
    def unread(self) -> int:
        """Bytes of answers that may wait for a client that does not read them."""
        return 4 * self.max_message


class Total:
    """Calls of all clients of a node that are not answered."""

    def __init__(self) -> None:
        self.count = 0


class InFlight:
    """Calls of one client that are not answered. They count for the node, too."""

    def __init__(self, total: Total) -> None:
        self._numbers: set[int] = set()
        self._total = total

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int) -> None:
        if number not in self._numbers:
            self._numbers.add(number)
            self._total.count += 1

    def discard(self, number: int) -> None:
        if number in self._numbers:
            self._numbers.discard(number)
            self._total.count -= 1

    def clear(self) -> None:
        self._total.count -= len(self._numbers)
        self._numbers.clear()

    def check(self, client: str, waiting: int, limits: Limits) -> None:
        """ResourceExhausted if there is no room for one more. ``waiting`` were sent, and nobody asked for answers."""
        if len(self._numbers) + waiting >= limits.in_flight:
            raise ResourceExhausted(f"{limits.in_flight} calls of {client} are in flight; wait for some of them")
        if self._total.count >= limits.in_flight_node:
            raise ResourceExhausted(f"{limits.in_flight_node} calls are in flight at this node; try again later")


class Outbox:
    """Messages that wait for a stream. What is taken at once fits into one message of the stream."""

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        self.size = 0

    def __len__(self) -> int:
        return len(self._messages)

    def append(self, data: bytes) -> None:
        self._messages.append(data)
        self.size += len(data) + _AROUND

    def clear(self) -> None:
        self._messages = []
        self.size = 0

    def take(self, most: int) -> list[bytes]:
        """From the front, at least one. Usually all."""
        if self.size <= most:
            taken = self._messages
            self.clear()
            return taken
        count, size = 0, 0
        for data in self._messages:
            size += len(data) + _AROUND
            if size > most and count:
                break
            count += 1
        taken = self._messages[:count]
        del self._messages[:count]
        self.size -= sum([len(data) + _AROUND for data in taken])
        return taken


# the size of arguments


def check_size(act: Act, max_message: int) -> None:
    """Before anything is sent: a message that is too large would break the stream, and all calls on it."""
    size = 0
    for ask in act.parts:
        size += len(ask.args) + len(ask.named)
    if size > max_message - MARGIN:
        what = " | ".join(f"{ask.object}.{ask.method}" for ask in act.parts)
        raise BadRequest(_too_large(what, size, max_message))


def check_huge(name: str, method: str, args: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Before the arguments are even written: texts and bytes that cannot fit are not copied first."""
    for value in (*args, *named.values()) if named else args:
        if isinstance(value, _LONG) and len(value) > MOST_EVER:
            size = f"{len(value):,}"
            raise BadRequest(f"{name}.{method}: an argument has {size} bytes, the limit is {MOST_EVER:,} or less")


def _too_large(what: str, size: int, max_message: int) -> str:
    return (
        f"{what}: the arguments have {size:,} bytes, the limit is {max_message - MARGIN:,}: send them in parts, or "
        "raise [serve] max_message"
    )


def fitting(message: ToClient, limits: Limits) -> bytes:
    """A message for a client. An answer that does not fit becomes an error, and the stream goes on."""
    data = encode(message)
    if isinstance(message, Answer) and len(data) > limits.max_message - _AROUND:
        text = (
            f"performed, but the result has {len(data):,} bytes, the limit is {limits.max_message:,}: ask for less, or "
            "raise [serve] max_message"
        )
        return encode(Refused(message.number, "RemoteError", text))
    return data


# the depth of arguments


def check_depth(where: str, data: bytes, values: Iterable[Any]) -> None:
    """BadRequest if lists and maps are nested too deep. What is short or flat is let through by a glance."""
    if len(data) <= DEEPEST:
        return
    level = [v for v in values if isinstance(v, _NESTED)]
    if not level or _is_shallow(level) or len(data) - len(data.translate(None, _BEGINS)) <= DEEPEST:
        return
    for _ in range(DEEPEST):
        if not level:
            return
        level = [v for one in level for v in _inside(one) if isinstance(v, _NESTED)]
    if level:
        raise BadRequest(too_deep(where))


def _is_shallow(level: list[Any]) -> bool:
    """Found out by looking at few values, whatever their size: a glance at all bytes of a large one takes long."""
    looked = 0
    while level:
        looked += sum(map(len, level))
        if looked > _FEW:
            return False
        level = [v for one in level for v in _inside(one) if isinstance(v, _NESTED)]
    return True


def too_deep(where: str) -> str:
    return f"{where}: the arguments are nested deeper than {DEEPEST} lists and maps"


def _inside(value: list[Any] | dict[Any, Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value
