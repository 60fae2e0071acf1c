"""What nodes say to each other outside of links: about the next view, and to those who are not members
(protocol.md §10.3).

Words may be lost, repeated and overtaken; who needs an answer says them again. They work before there is a link, and
between nodes that do not use each other's frames any more.
"""

from typing import NamedTuple

import msgspec

from framework.com.messages import Frame, Request, decode_with
from framework.com.view import Holding, View
from framework.ids import GroupId, Node, Replica


class Ballot(NamedTuple):
    """An attempt to decide the next view; a later one of two has the higher ballot."""

    round: int
    node: Node


NONE = Ballot(0, Node(""))


class Placed(NamedTuple):
    """A proposal of a destination that departs."""

    group: GroupId
    replica: Replica
    number: int


class Report(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """What a member has from those who leave: the flush."""

    proposals: tuple[Placed, ...] = ()
    requests: tuple[Request, ...] = ()


class Decision(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """The next view, and the union of the reports: all survivors use exactly it."""

    view: View
    left: tuple[Node, ...] = ()
    joined: tuple[Node, ...] = ()
    report: Report = Report()
    refused: tuple[Node, ...] = ()  # wanted to join, but not all who stay hear them


class Word(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    source: Node


class Hello(Word, tag=11, frozen=True):
    """From a node that is not a member: it wants to be one."""

    incarnation: int
    heard: tuple[tuple[Node, int], ...] = ()  # the other outsiders it has heard
    version: int = 0  # of the last view it remembers
    holds: tuple[Holding, ...] = ()


class OfGroup(Word, frozen=True, kw_only=True):
    formation: bytes = b""


class FromMember(OfGroup, frozen=True):
    life: int
    version: int  # the view it is in


class Prepare(FromMember, tag=12, frozen=True):
    """Take part in deciding the view after ``version``, without these."""

    ballot: Ballot
    leaving: tuple[Node, ...]


class Promise(FromMember, tag=13, frozen=True):
    """I take part in no earlier attempt any more; this is what I have from those who leave."""

    ballot: Ballot
    report: Report
    unready: tuple[Replica, ...] = ()
    holds: tuple[Holding, ...] = ()
    suspects: tuple[Node, ...] = ()
    shuns: tuple[Node, ...] = ()  # were left out for their silence, and are still not heard
    outsiders: tuple[tuple[Node, int, tuple[Holding, ...]], ...] = ()
    accepted: tuple[Ballot, Decision] | None = None


class Refuse(FromMember, tag=14, frozen=True):
    """I take part in a later attempt."""

    ballot: Ballot
    promised: Ballot


class Accept(FromMember, tag=15, frozen=True):
    ballot: Ballot
    decision: Decision


class Accepted(FromMember, tag=16, frozen=True):
    ballot: Ballot


class Decided(Word, tag=17, frozen=True):
    decision: Decision


class Excluded(Word, tag=18, frozen=True):
    """You are not in my view."""

    view: View


class Behind(FromMember, tag=19, frozen=True):
    """You are in a later view. What was decided?"""


Voting = Prepare | Promise | Refuse | Accept | Accepted
AnyWord = Hello | Voting | Decided | Excluded | Behind

_decoder: msgspec.msgpack.Decoder[Frame | AnyWord] = msgspec.msgpack.Decoder(Frame | AnyWord)


def decode(data: bytes, peer: Node) -> Frame | AnyWord:
    """Bytes from ``peer`` as a frame or a word, or BadMessage that says what is wrong and where."""
    return decode_with(_decoder, data, peer)
