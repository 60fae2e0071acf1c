"""One FIFO stream over a wire that loses, repeats and reorders frames (protocol.md §9.1, P3 §4.3-4.4)."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.link import Link, Timing
from framework.com.messages import AnyMessage, Frame, Known, decode
from framework.errors import BadMessage
from framework.ids import GroupId, Node, Replica
from tests.tiers import examples

A, B = Node("a"), Node("b")
TIMING = Timing(delta=10.0, ask_after=3.0, resend_after=20.0, window=4, batch=2, burst=3)
quick = settings(derandomize=True, deadline=None, max_examples=examples(37, 150))


def message(n: int) -> AnyMessage:
    return Known(1, GroupId(n, Replica("x@a"), 0), Replica("x@a"))


class Pair:
    """Two ends, and frames on their way between them."""

    def __init__(self, timing: Timing = TIMING) -> None:
        self.links = {A: Link(B, timing), B: Link(A, timing)}
        self.wires: dict[Node, list[bytes]] = {A: [], B: []}  # frames to a, frames to b
        self.got: dict[Node, list[int]] = {A: [], B: []}
        self.dropped: list[str] = []
        self.now = 0.0

    def other(self, node: Node) -> Node:
        return B if node == A else A

    def push(self, node: Node, n: int) -> None:
        self.links[node].push(message(n))

    def write(self, node: Node) -> None:
        data = self.links[node].take(node, 1, 1, self.now)
        if data is not None:
            self.wires[self.other(node)].append(data)
        assert self.links[node].unacked <= self.links[node].timing.window

    def tick(self, node: Node) -> None:
        link = self.links[node]
        out = link.resend(self.now)
        if link.wants_tick(self.now):
            out = [*out, link.take(node, 1, 1, self.now) or link.empty(node, 1, 1, self.now)]
        self.wires[self.other(node)] += out

    def arrive(self, node: Node, data: bytes) -> None:
        link = self.links[node]
        frame = decode(data, self.other(node))
        link.check(frame)
        expected = link.preview(frame)
        ready = link.receive(frame, self.now, self.dropped.append)
        assert ready == expected, "preview says what receive gives"
        self.got[node] += [m.group.clock for f in ready for m in f.messages if isinstance(m, Known)]
        if frame.ask:
            self.wires[self.other(node)] += link.again(self.now, frame.ask)

    def perfect(self, rounds: int = 60) -> None:
        """From now on nothing is lost."""
        for _ in range(rounds):
            self.now += 5.0
            for node in (A, B):
                self.write(node)
                self.tick(node)
            for node in (A, B):
                frames, self.wires[node] = self.wires[node], []
                for data in frames:
                    self.arrive(node, data)


events = st.lists(
    st.tuples(st.sampled_from([A, B]), st.sampled_from(["push", "push", "write", "arrive", "lose", "repeat", "tick"]),
              st.integers(0, 5)),
    max_size=80,
)  # fmt: skip


@quick
@given(events=events)
def test_every_message_once_and_in_order(events: list[tuple[Node, str, int]]) -> None:
    pair = Pair()
    sent: dict[Node, list[int]] = {A: [], B: []}
    for node, what, which in events:
        pair.now += 1.0
        wire = pair.wires[node]
        if what == "push":
            sent[node].append(len(sent[node]))
            pair.push(node, len(sent[node]) - 1)
        elif what == "write":
            pair.write(node)
        elif what == "tick":
            pair.tick(node)
        elif wire:
            i = which % len(wire)  # any of them: they overtake each other
            data = wire[i] if what == "repeat" else wire.pop(i)
            if what != "lose":
                pair.arrive(node, data)
        for end in (A, B):
            got, all_sent = pair.got[end], sent[pair.other(end)]
            assert got == all_sent[: len(got)]
    pair.perfect()
    assert pair.got == {A: sent[B], B: sent[A]}
    for link in pair.links.values():
        assert (link.queued, link.unacked, link._early, link.gap_at) == (0, 0, {}, None)


def test_one_frame_takes_all_that_waits_up_to_a_batch() -> None:
    pair = Pair()
    for n in range(5):
        pair.push(A, n)
    pair.write(A)
    assert [len(decode(d, A).messages) for d in pair.wires[B]] == [2]
    assert pair.links[A].queued == 3


def test_push_says_when_the_driver_must_be_woken() -> None:
    link = Link(B, TIMING)
    assert [link.push(message(n)) for n in range(3)] == [True, False, False]
    link.take(A, 1, 1, 0.0)
    link.take(A, 1, 1, 0.0)
    assert link.push(message(4)) is True


def test_messages_on_the_way() -> None:
    pair = Pair()
    for n in range(3):
        pair.push(A, n)
    pair.write(A)
    pair.write(A)
    assert pair.links[A].on_the_way == 3
    pair.arrive(B, pair.wires[B][0])
    pair.arrive(A, pair.links[B].empty(B, 1, 1, 0.0))
    assert pair.links[A].on_the_way == 1


def test_the_window() -> None:
    """A bounded number of frames is unacknowledged; an acknowledgement makes room."""
    pair = Pair()
    for n in range(20):
        pair.push(A, n)
        pair.write(A)
    link = pair.links[A]
    assert (link.unacked, link.open) == (4, False)
    for data in pair.wires[B][:3]:
        pair.arrive(B, data)
    assert pair.links[B].hurry, "the sender is about to run out of window"
    pair.write(B)
    pair.arrive(A, pair.wires[A].pop())
    assert (link.unacked, link.open) == (1, True)


def test_a_gap_is_asked_for_after_a_while_and_not_again_at_once() -> None:
    pair = Pair()
    frames = send(pair, 3)
    pair.arrive(B, frames[2])
    link = pair.links[B]
    link.empty(B, 1, 1, 0.0)
    assert not link.wants_tick(TIMING.ask_after - 0.1)
    assert link.wants_tick(TIMING.ask_after)
    pair.now += TIMING.ask_after
    asked = decode(link.empty(B, 1, 1, pair.now), B)
    assert (asked.number, asked.ask) == (0, 1)
    assert decode(link.empty(B, 1, 1, pair.now + 1.0), B).ask == 0
    assert decode(link.empty(B, 1, 1, pair.now + TIMING.ask_after), B).ask == 1


def test_an_ask_is_answered_from_there_on_in_bursts() -> None:
    pair = Pair(Timing(window=100, burst=3))
    frames = send(pair, 6)
    assert pair.links[A].again(0.0, 2) == frames[1:4]
    assert pair.links[A].again(0.0) == frames[:3]


def test_nothing_is_sent_again_before_its_time() -> None:
    pair = Pair()
    frames = send(pair, 2)
    assert pair.links[A].resend(TIMING.resend_after - 0.1) == []
    assert pair.links[A].resend(TIMING.resend_after) == frames
    assert pair.links[A].resend(TIMING.resend_after + 1.0) == []
    for data in frames:
        pair.arrive(B, data)
    pair.write(B)
    pair.arrive(A, pair.wires[A].pop())
    assert pair.links[A].resend(1e9) == []


def test_a_silent_node_sends_an_empty_frame_after_delta() -> None:
    """P3 §4.4."""
    link = Link(B, TIMING)
    link.empty(A, 1, 1, 0.0)
    assert not link.wants_tick(TIMING.delta - 0.1)
    assert link.wants_tick(TIMING.delta)


def test_an_acknowledgement_alone_is_a_frame_without_number() -> None:
    pair = Pair()
    pair.arrive(B, send(pair, 1)[0])
    pair.write(B)
    frame = decode(pair.wires[A].pop(), B)
    assert (frame.number, frame.ack, frame.messages) == (0, 1, ())
    pair.write(B)
    assert pair.wires[A] == [], "once"


def test_a_duplicate_is_told_and_acknowledged_again() -> None:
    """The acknowledgement may have been lost: else the sender would repeat for ever."""
    pair = Pair()
    (data,) = send(pair, 1)
    pair.arrive(B, data)
    pair.write(B)
    pair.arrive(B, data)
    assert pair.dropped == ["frame 1 from a again; 2 is the next expected"]
    assert pair.links[B].ack_due
    assert pair.got[B] == [0]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: {"ack": 1}, "acknowledges 1, but the last one sent is 0"),
        (lambda f: {"ask": 1}, "asks for 1, which was not sent"),
        (lambda f: {"number": 1 + 4 * TIMING.window}, "far beyond 1"),
        (lambda f: {"number": 0}, "an unnumbered frame carries messages"),
    ],
)
def test_what_cannot_be_is_refused(spoil: Callable[[Frame], dict[str, int]], says: str) -> None:
    link = Link(A, TIMING)
    fields = {"source": A, "view": 1, "number": 1, "ack": 0, "ask": 0, "clock": 1, "messages": (message(1),)}
    good = Frame(**fields)  # type: ignore[arg-type]
    link.check(good)
    with pytest.raises(BadMessage, match=says):
        link.check(Frame(**{**fields, **spoil(good)}))  # type: ignore[arg-type]


def send(pair: Pair, count: int) -> list[bytes]:
    """This many frames from a, on their way to b."""
    for n in range(count):
        pair.push(A, n)
        pair.write(A)
    frames, pair.wires[B] = pair.wires[B], []
    return frames
