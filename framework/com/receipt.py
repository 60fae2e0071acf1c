"""How a caller waits for responses (P0 §3.2): srec one, crec all, drec the first, quorum(r) r of each object.

The message that completes a receipt is its most significant one; what arrives later is not received.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Literal, get_args

import msgspec

from framework.errors import BadRequest
from framework.ids import ObjectName, Replica, object_of

Way = Literal["srec", "crec", "drec", "quorum"]
_WAYS = get_args(Way)


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    way: Way
    r: int = 1
    source: Replica | None = None

    def __str__(self) -> str:
        if self.way == "quorum":
            return f"quorum({self.r})"
        return f"srec({self.source})" if self.source else self.way


CREC = Receipt("crec")
DREC = Receipt("drec")
SREC = Receipt("srec")


def srec(source: Replica) -> Receipt:
    return Receipt("srec", source=source)


def quorum(r: int) -> Receipt:
    return Receipt("quorum", r)


def majority(n: int) -> Receipt:
    """Counted against the replicas the object is declared to have, not against those that are left."""
    return Receipt("quorum", n // 2 + 1)


def check_wait(receipt: Receipt | None, deadline: float | None) -> None:
    """BadRequest for what is no way to wait."""
    if receipt is not None and receipt.way not in _WAYS:
        raise BadRequest(f"no receipt {receipt.way!r}; there are {', '.join(_WAYS)}")
    if deadline is not None and isnan(deadline):
        raise BadRequest("the deadline is not a number")


def check(receipt: Receipt, dests: Mapping[ObjectName, Sequence[Replica]]) -> None:
    """BadRequest for a receipt that these destinations can never complete, or that leaves open what is meant."""
    every = [r for part in dests.values() for r in part]
    if receipt.way == "srec":
        if receipt.source is None and len(every) != 1:
            raise BadRequest(f"srec of {len(every)} destinations: name the source, or use drec for the first")
        if receipt.source is not None and receipt.source not in every:
            raise BadRequest(f"srec from {receipt.source}, which is not among the destinations {every}")
    if receipt.way == "quorum":
        if receipt.r < 1:
            raise BadRequest(f"quorum({receipt.r}): at least one response is needed")
        for name, part in dests.items():
            if receipt.r > len(part):
                raise BadRequest(
                    f"quorum({receipt.r}) can never complete: {name} gets the request at {len(part)} replica(s)"
                )


def complete(receipt: Receipt, dests: Iterable[Replica], got: Sequence[Replica]) -> bool:
    """Do the responses from ``got`` complete the receipt of a request sent to ``dests``?"""
    if receipt.way == "drec":
        return bool(got)
    if receipt.way == "srec" and receipt.source is not None:
        return receipt.source in got
    if receipt.way == "quorum":
        need: dict[ObjectName, int] = {object_of(d): receipt.r for d in dests}
        for g in got:
            need[object_of(g)] -= 1
        return all(n <= 0 for n in need.values())
    return len(got) == len(tuple(dests))
