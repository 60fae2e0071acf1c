"""Identifiers of protocol.md §3. They print short and sort right; one cannot be passed for another.

A replica is written ``bank@n2``: object ``bank`` on node ``n2``. Replica and node names are interned strings and
not pairs because they are dictionary keys on every hot path of the com layer.
"""

import re
import sys
from collections.abc import Callable
from typing import NamedTuple, NewType, cast

from framework.errors import BadRequest

Node = NewType("Node", str)
ObjectName = NewType("ObjectName", str)
Replica = NewType("Replica", str)

#: The object whose instances are transactions (P0 §2); every node has one.
TRAN = ObjectName("tran")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}\Z")


def check_name(name: str, what: str) -> str:
    """Names go into ids, files and metrics: letters, digits, ``_ . -``; at most 63 of them."""
    if not _NAME.match(name):
        raise BadRequest(
            f"{what} {name!r} is not a name: use a letter, then letters, digits, '_', '.', '-' (63 at most)"
        )
    return name


def replica(name: str, node: str) -> Replica:
    return Replica(f"{name}@{node}")


class _Halves(dict[Replica, str]):
    """One half of replica names. They are asked for on every message, and there are few of them."""

    def __init__(self, half: int) -> None:
        super().__init__()
        self.half = half

    def __missing__(self, at: Replica) -> str:
        if len(self) > 65536:  # names from a peer that invents them
            self.clear()
        half = self[at] = sys.intern(at.partition("@")[self.half])
        return half


object_of = cast("Callable[[Replica], ObjectName]", _Halves(0).__getitem__)
node_of = cast("Callable[[Replica], Node]", _Halves(2).__getitem__)


class Sid(NamedTuple):
    """Start identifier of an instance: the clock when it started, and where (P3 §4.1)."""

    clock: int
    replica: Replica

    def __str__(self) -> str:
        return f"{self.clock}:{self.replica}"


class GroupId(NamedTuple):
    """``id(m)`` = (sid, no): one transmission; all instances of its message group share it."""

    clock: int
    replica: Replica
    no: int

    @property
    def sid(self) -> Sid:
        return Sid(self.clock, self.replica)

    def __str__(self) -> str:
        return f"{self.clock}:{self.replica}:{self.no}"


class Stamp(NamedTuple):
    """Agreed place of a request among those that conflict with it. Compares as (number, group)."""

    number: int
    group: GroupId

    def __str__(self) -> str:
        return f"{self.number}/{self.group}"


class Invocation(NamedTuple):
    """The path of call numbers from the root: the same at every replica that makes the call (protocol.md §3.2)."""

    client: str
    path: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.client}/" + ".".join(map(str, self.path))

    @classmethod
    def parse(cls, text: str) -> "Invocation":
        """BadRequest if it is none."""
        client, _, path = text.rpartition("/")
        if not client or not re.fullmatch(r"\d{1,18}(\.\d{1,18}){0,99}", path, re.ASCII):
            raise BadRequest(f"{text!r:.80} is no call: write CLIENT/NUMBER, or CLIENT/NUMBER.NUMBER")
        return cls(client, tuple(map(int, path.split("."))))

    def ancestor(self, length: int) -> "Invocation":
        """The invocation whose path is the first ``length`` numbers of this one."""
        return Invocation(self.client, self.path[:length])
