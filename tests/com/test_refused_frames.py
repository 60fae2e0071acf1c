"""Frames that once were taken and did harm later: a KeyError when an instance ended, a request that waited for ever,
a link that refused everything from then on. They are refused when they come, and the node is as it was."""

from typing import Any

import pytest

from framework.com.check import AHEAD, CLOCK
from framework.com.core import Com
from framework.com.events import Arrived, Completed, Submit, Transmit, Writable
from framework.com.messages import Announce, Dest, Part
from framework.errors import BadMessage
from framework.footprint import Footprint, Keys
from framework.ids import Invocation, Replica

from .fingerprint import fingerprint
from .trio import (
    EVERYWHERE,
    N1,
    N2,
    N3,
    F,
    G,
    W,
    arrived,
    delivered,
    group,
    nodes,
    outgoing,
    proposal,
    request,
    to,
    write,
)

TWICE: Keys = (("k", "w"), ("k", "w"))
MIXED: Keys = (("k", "w"), ("k", "r"))
BOTH = to("f@n1", "f@n2")


def refused(com: Com, event: Arrived) -> str:
    before = fingerprint(com)
    with pytest.raises(BadMessage) as caught:
        com.step(event, 0.0)
    assert fingerprint(com) == before, f"{caught.value}: refused, but the state has changed"
    return str(caught.value)


def test_the_plain_ones_are_taken() -> None:
    """Guards what follows: only what is changed is wrong."""
    assert delivered(nodes()[N1].step(arrived(request()), 0.0))
    com = nodes()[N1]
    com.step(arrived(proposal(announce=Announce(5, BOTH, W))), 0.0)
    assert delivered(com.step(arrived(write(), number=2), 0.0))


def context(*entries: tuple[str, Any, int]) -> Any:
    return tuple((Replica(at), ((origin, seq),)) for at, origin, seq in entries)


REQUESTS: list[tuple[str, Any, str]] = [
    ("its own predecessor: waits for ever", request(context=context(("g@n1", N2, 1))), "follows itself"),
    ("after a later one of the same link", request(context=context(("g@n1", N2, 9))), "follows itself or a later one"),
    (
        "a replica twice in the context: the first entry was lost",
        request(context=context(("g@n1", N3, 1), ("g@n1", N3, 2))),
        "names a replica twice",
    ),
    ("a key twice", request(parts=(Part(G, Footprint("a", TWICE)),)), "names a key twice"),
    ("a key twice, in two modes", request(parts=(Part(G, Footprint("a", MIXED)),)), "names a key twice"),
    ("without agreement where that is needed", write(ordered=False), "says ordered False"),
    ("with agreement where nobody answers", request(ordered=True), "says ordered True"),
]


@pytest.mark.parametrize(("message", "says"), [r[1:] for r in REQUESTS], ids=[r[0] for r in REQUESTS])
def test_a_request(message: Any, says: str) -> None:
    assert says in refused(nodes()[N1], arrived(message))


ANNOUNCED: list[tuple[str, Any, str]] = [
    ("no destinations: was a ValueError", proposal(announce=Announce(5, (), ())), "destinations [] name none"),
    ("a group of nobody: blocks for ever", proposal(announce=Announce(5, BOTH, W), origin="tran@nowhere"), "nowhere"),
    ("a group without an origin", proposal(announce=Announce(5, BOTH, W), origin=""), "nobody cannot have sent"),
    ("a group of the node itself", proposal(announce=Announce(5, BOTH, W), origin="tran@n1"), "n1 cannot have sent"),
    ("a key twice", proposal(announce=Announce(5, BOTH, (Part(F, Footprint("w", TWICE)),))), "names a key twice"),
]


@pytest.mark.parametrize(("message", "says"), [a[1:] for a in ANNOUNCED], ids=[a[0] for a in ANNOUNCED])
def test_an_announcement(message: Any, says: str) -> None:
    assert says in refused(nodes()[N1], arrived(message))


UNLIKE: list[tuple[str, dict[str, Any]]] = [
    ("other destinations", {"dests": (*BOTH, Dest(Replica("f@n3"), 1))}),
    ("another footprint", {"parts": (Part(F, Footprint("r")),)}),
    ("other keys", {"parts": (Part(F, Footprint("w", (("k", "w"),))),)}),
    ("another number", {"number": 6}),
]


@pytest.mark.parametrize("change", [u[1] for u in UNLIKE], ids=[u[0] for u in UNLIKE])
def test_a_request_that_is_not_what_was_announced(change: dict[str, Any]) -> None:
    """Its place was given to something else: it waited for proposals of whom it does not go to."""
    com = nodes()[N1]
    com.step(arrived(proposal(announce=Announce(5, BOTH, W))), 0.0)
    assert "not what was announced" in refused(com, arrived(write(**change), number=2))
    assert delivered(com.step(arrived(write(), number=2), 0.0)), "the right one still comes through"


def test_a_group_that_comes_twice_in_one_frame() -> None:
    """The second one took the place of the first in the queue, which then never ended."""
    again = write(2, group=group(1))
    assert "comes twice" in refused(nodes()[N1], arrived(write(), again))


def test_a_group_that_comes_again_while_it_waits() -> None:
    com = nodes()[N1]
    com.step(arrived(write()), 0.0)
    assert "came before" in refused(com, arrived(write(2, group=group(1)), number=2))


def test_a_group_may_have_two_replicas_on_one_node() -> None:
    """What is refused is twice to one replica; a pcast comes once to each of its objects."""
    parts = (*W, Part(G, Footprint("a")))
    dests = to("f@n1", "g@n1")
    one = write(dests=dests, parts=parts)
    other = write(dests=dests, parts=parts, target="g@n1", invocation=Invocation("bob", (2,)))
    assert len(delivered(nodes()[N1].step(arrived(one, other), 0.0))) == 2


def test_a_bad_frame_that_comes_early() -> None:
    """It was kept unread. When its turn came, the good frame before it was refused on its account, for ever."""
    com = nodes()[N1]
    assert "target 'g@n2' is not on n1" in refused(com, arrived(request(2, target="g@n2"), number=2))
    (first,) = delivered(com.step(arrived(request()), 0.0))
    com.step(arrived(request(2), number=2), 0.0)
    assert delivered(com.step(Completed(first, True), 0.0))


def test_a_good_frame_that_comes_early_is_kept() -> None:
    com = nodes()[N1]
    assert not delivered(com.step(arrived(request(2), number=2), 0.0))
    (first,) = delivered(com.step(arrived(request()), 0.0))
    assert delivered(com.step(Completed(first, True), 0.0))


@pytest.mark.parametrize("clock", [-1, AHEAD, CLOCK, (1 << 53) - 1])
def test_a_clock_out_of_range(clock: int) -> None:
    """A node that took over a clock near the end of numbers could send nothing that a peer accepts."""
    assert "out of range" in refused(nodes()[N1], arrived(number=0, clock=clock))


def test_a_clock_that_jumps_leaves_the_node_usable() -> None:
    all_nodes = nodes()
    com = all_nodes[N1]
    com.step(arrived(number=0, clock=AHEAD // 2), 0.0)
    com.step(Submit("ann", 1, "oneway", "mcast", (outgoing("f", "w", *EVERYWHERE),)), 0.0)
    data = next(e for e in com.step(Writable(N3), 0.0) if isinstance(e, Transmit)).data
    all_nodes[N3].step(Arrived(N1, data), 0.0)
    assert all_nodes[N3].clock > AHEAD // 2
