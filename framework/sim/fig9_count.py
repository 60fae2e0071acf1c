"""Ways to count what is ordered: P0 §6 says "messages ordered", and not when one message is.

A counting is four choices:

unit
    ``next``: of each message, whether it is ordered with the one delivered just before it. A traditional protocol
    delivers one sequence; there the answer is always yes.
    ``some``: of each message that follows another one causally, whether the protocol puts any of those before it.
    ``causal``: of all pairs that the network orders causally, how many the protocol orders.
    ``total``: of all pairs, how many the protocol orders.
messages
    ``requests``, or ``all``: with the responses.
where
    Only messages to the same ``replica``, to the same ``computer``, or ``anywhere`` (P0's definitions name no common
    destination).
relation
    ``direct`` and ``significant``: P0 Def. 1-3 without and with its transitive rule. ``ob``: OB-precedes
    (protocol.md §2.3), that is significant, or requests that conflict. ``rule``: the ordering rule of P0 §5,
    significant and either from the same sender, or requests that conflict, or a response before a request.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Literal

import msgspec

from framework.sim.fig9_relation import Message, Relations

Unit = Literal["next", "some", "causal", "total"]
Scope = Literal["requests", "all"]
Where = Literal["replica", "computer", "anywhere"]
Order = Literal["direct", "significant", "ob", "rule"]


class Counting(msgspec.Struct, frozen=True):
    unit: Unit
    messages: Scope
    where: Where
    relation: Order

    def __str__(self) -> str:
        return f"{self.unit}/{self.messages}/{self.where}/{self.relation}"


def _countings() -> Iterator[Counting]:
    scopes: tuple[Scope, ...] = ("all", "requests")
    places: tuple[Where, ...] = ("computer", "replica")
    orders: tuple[Order, ...] = ("ob", "significant", "direct", "rule")
    for scope, where, order in product(scopes, places, orders):
        yield Counting("next", scope, where, order)
    for scope, where, order in product(scopes, places, orders):
        yield Counting("some", scope, where, order)
    for scope, place, order in product(scopes, ("anywhere", *places), orders):
        yield Counting("causal", scope, place, order)
    for scope, where, order in product(scopes, places, orders):
        yield Counting("total", scope, where, order)


COUNTINGS = tuple(_countings())

#: What the picture shows. Why this one: docs/fig9.md.
MAIN = Counting("next", "all", "computer", "ob")


class Tally(msgspec.Struct, frozen=True, array_like=True):
    """``ordered`` by the protocol, of ``base`` that a traditional one orders."""

    ordered: int
    base: int

    @property
    def not_ordered(self) -> float | None:
        """In percent; None if there is nothing to be ordered."""
        return 100.0 * (self.base - self.ordered) / self.base if self.base else None


class Counter:
    """Counts one run, in any way."""

    def __init__(self, run: Relations) -> None:
        self.run = run
        self.requests = sum(m.bit for m in run.messages if m.request)
        self.every = sum(m.bit for m in run.messages)
        self._senders = _masks(run.messages, "sender")
        self._places = {"replica": _masks(run.messages, "target"), "computer": _masks(run.messages, "computer")}

    def tally(self, how: Counting) -> Tally:
        if how.unit == "next":
            return self._next(how)
        ordered = base = 0
        for m in self.run.messages:
            if how.messages == "all" or m.request:
                among = self._among(m, how)
                found = among & self.precede(m, how.relation)
                ordered += bool(found) if how.unit == "some" else found.bit_count()
                base += bool(among) if how.unit == "some" else among.bit_count()
        return Tally(ordered, base)

    def precede(self, m: Message, order: Order) -> int:
        """The messages that the relation orders with m, as far as they have a smaller number."""
        if order == "direct":
            return m.direct
        if order == "significant":
            return m.before
        if order == "ob":
            return m.before | m.conflicts
        responses = self.every & ~self.requests if m.request else 0
        return m.before & (self._senders[m.sender] | m.conflicts | responses)

    def _among(self, m: Message, how: Counting) -> int:
        """What m is compared with: earlier messages, and of these what the traditional protocol orders."""
        among = m.bit - 1 if how.unit == "total" else m.network
        if how.messages == "requests":
            among &= self.requests
        if how.where == "replica":
            among &= self._places["replica"][m.target]
        elif how.where == "computer":
            among &= self._places["computer"][m.computer]
        return among

    def _next(self, how: Counting) -> Tally:
        ordered = base = 0
        for sequence in self.run.sequences("target" if how.where == "replica" else "computer"):
            chosen = [m for m in sequence if how.messages == "all" or m.request]
            for one, other in pairwise(chosen):
                early, late = sorted((one, other), key=lambda m: m.number)
                ordered += bool(self.precede(late, how.relation) & early.bit)
                base += 1
        return Tally(ordered, base)


def _masks(messages: list[Message], by: str) -> dict[str, int]:
    masks: dict[str, int] = {}
    for m in messages:
        masks[getattr(m, by)] = masks.get(getattr(m, by), 0) | m.bit
    return masks
