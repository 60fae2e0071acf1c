"""Identifiers and parts of messages, made quickly.

The constructor of a NamedTuple is a function of the interpreter, which takes five times as long as what it does, and a
call makes a dozen of them on its way through a node. These do the same.
"""

from typing import Any, Final

from framework.com.epoch import Agreed
from framework.com.events import Outgoing, Response, Ride
from framework.com.messages import Dest, Part, Rider, WireContext
from framework.footprint import Footprint
from framework.ids import GroupId, Invocation, ObjectName, Replica, Sid, Stamp

_new: Final[Any] = tuple.__new__


def sid(clock: int, at: Replica) -> Sid:
    made: Sid = _new(Sid, (clock, at))
    return made


def group_id(clock: int, at: Replica, no: int) -> GroupId:
    made: GroupId = _new(GroupId, (clock, at, no))
    return made


def stamp(number: int, group: GroupId) -> Stamp:
    made: Stamp = _new(Stamp, (number, group))
    return made


def invocation(client: str, path: tuple[int, ...]) -> Invocation:
    made: Invocation = _new(Invocation, (client, path))
    return made


def dest(at: Replica, seq: int) -> Dest:
    made: Dest = _new(Dest, (at, seq))
    return made


def part(name: ObjectName, footprint: Footprint) -> Part:
    made: Part = _new(Part, (name, footprint))
    return made


def outgoing(name: ObjectName, footprint: Footprint, args: bytes, to: tuple[Replica, ...]) -> Outgoing:
    made: Outgoing = _new(Outgoing, (name, footprint, args, to))
    return made


def agreed(
    places: tuple[str, ...], meets: tuple[str, ...], stamp: Stamp, marks: WireContext, brought: WireContext
) -> Agreed:
    made: Agreed = _new(Agreed, (places, meets, stamp, marks, brought))
    return made


def response(at: Replica, status: str, body: bytes) -> Response:
    made: Response = _new(Response, (at, status, body))
    return made


def rider(group: GroupId, invocation: Invocation, done: int) -> Rider:
    made: Rider = _new(Rider, (group, invocation, done))
    return made


def ride(ok: bool, body: bytes, output: bool) -> Ride:
    made: Ride = _new(Ride, (ok, body, output))
    return made


class Parts:
    """Parts of message groups. That of a transmission to one object is mostly the same as the last time."""

    def __init__(self) -> None:
        self._last: dict[ObjectName, tuple[Part, ...]] = {}

    def of(self, asked: tuple[Outgoing, ...]) -> tuple[Part, ...]:
        if len(asked) > 1:
            return tuple([part(p[0], p[1]) for p in asked])
        name, footprint = asked[0][0], asked[0][1]
        last = self._last.get(name)
        if last is None or last[0][1] is not footprint:
            last = self._last[name] = (part(name, footprint),)
        return last
