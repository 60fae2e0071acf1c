"""What comes from a peer and is not right (protocol.md §9.2, A1): refused or dropped, and the node is as it was before.

The frames are real ones, on their way to a node that is in the middle of something (tests.com.scene), spoilt in one
way each. "As it was" is meant literally: a fingerprint of all that the node holds.
"""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from framework.com.core import Com
from framework.com.events import Arrived, Transmit, Wake
from framework.com.messages import (
    Ancestor,
    Announce,
    Delivered,
    Dest,
    Frame,
    Known,
    Part,
    Proposal,
    Request,
    Response,
    decode,
    encode,
)
from framework.com.telling import Dropped, Landed
from framework.errors import BadMessage
from framework.footprint import Footprint
from framework.ids import GroupId, Invocation, Node, ObjectName, Replica
from tests.tiers import examples

from .fingerprint import fingerprint
from .scene import N1, N2, N3, Scene

FRAMES = len(Scene().frames)
BIG = 1 << 53
quick = settings(derandomize=True, deadline=None, max_examples=examples(25, 100))


def scene_before(which: int) -> Scene:
    """The scene when this frame of n2 is the next one expected."""
    scene = Scene()
    for data in scene.frames[:which]:
        scene.com.step(Arrived(N2, data), 1.0)
    return scene


_unchanged: dict[int, Scene] = {}


def lend(which: int) -> Scene:
    """The same, made once: it can be used again as long as everything is refused. Else ``del _unchanged[which]``."""
    if which not in _unchanged:
        _unchanged[which] = scene_before(which)
    return _unchanged[which]


def refused(com: Com, peer: Node, data: bytes) -> str:
    """Give it the bytes; they must be refused with the state as it was. What does the error say?"""
    before = fingerprint(com)
    with pytest.raises(BadMessage) as caught:
        com.step(Arrived(peer, data), 1.0)
    assert fingerprint(com) == before, f"{caught.value}: refused, but the state has changed"
    return str(caught.value)


def taken_or_refused(com: Com, peer: Node, data: bytes) -> bool:
    """Nothing but BadMessage is raised, and that leaves everything as it was. Was it taken?"""
    before = fingerprint(com)
    try:
        com.step(Arrived(peer, data), 1.0)
        return True
    except BadMessage as e:
        says = str(e)
    assert str(peer) in says
    assert fingerprint(com) == before, f"{says}: refused, but the state has changed"
    return False


def test_the_scene_has_every_kind_of_message_and_goes_on() -> None:
    """Guards what follows: unspoilt frames are taken, and the run that they belong to is right."""
    scene = scene_before(FRAMES)
    kinds = {type(m) for frame in scene.decoded() for m in frame.messages}
    assert kinds == {Request, Proposal, Known, Response, Delivered}
    assert Scene().stage.finish().violations == []


def test_a_fingerprint_sees_every_frame() -> None:
    scene = Scene()
    for data in scene.frames:
        before = fingerprint(scene.com)
        scene.com.step(Arrived(N2, data), 1.0)
        if decode(data, N2).number:
            assert fingerprint(scene.com) != before


# bytes


@quick
@given(data=st.binary(max_size=200))
@example(data=b"")
@example(data=b"\xc0")
@example(data=b"\x90" * 100_000)
@example(data=b"\x91" * 100_000)
@example(data=b"\x97\xa2n2\x01\x01\x00\x00\x01\xdd\xff\xff\xff\xff")  # four thousand million messages, it says
@example(data=b"\xc6\xff\xff\xff\xff")
@example(data=b"\x97\xa2\xff\xfe\x01\x01\x00\x00\x01\x90")  # no UTF-8
def test_any_bytes(data: bytes) -> None:
    assert "frame from n2" in refused(lend(0).com, N2, data)


@quick
@given(which=st.integers(0, FRAMES - 1), data=st.data())
def test_a_frame_cut_off_or_with_something_added(which: int, data: st.DataObject) -> None:
    scene = lend(which)
    good = scene.frames[which]
    cut = data.draw(st.integers(0, len(good) - 1))
    refused(scene.com, N2, good[:cut])
    refused(scene.com, N2, good + data.draw(st.binary(min_size=1, max_size=5)))
    if cut % 8 == 0:  # the good one still comes through
        del _unchanged[which]
        scene.com.step(Arrived(N2, good), 1.0)


@quick
@given(which=st.integers(0, FRAMES - 1), data=st.data())
def test_a_flipped_bit(which: int, data: st.DataObject) -> None:
    scene = lend(which)
    good = bytearray(scene.frames[which])
    bit = data.draw(st.integers(0, len(good) * 8 - 1))
    good[bit // 8] ^= 1 << bit % 8
    if taken_or_refused(scene.com, N2, bytes(good)):
        del _unchanged[which]


# one value in a frame replaced

ODD: list[Any] = [
    0, -1, 1, 2, 7, BIG - 1, BIG, 2**64 - 1, -(2**63), 1.5, True, None, "", "x", "n1", "n9", "f@n1", "f@n2", "f@n9",
    "@", "q@n1", b"", b"x", [], [[]], ["n2", 1], ["f@n1", 1], "w", "r", "oneway",
]  # fmt: skip


def places(tree: Any, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    found = [path] if path else []
    for i, inner in enumerate(tree if isinstance(tree, list) else ()):
        found += places(inner, (*path, i))
    return found


def spoil(tree: Any, path: tuple[int, ...], how: str, value: Any) -> Any:
    tree = copy.deepcopy(tree)
    at = tree
    for i in path[:-1]:
        at = at[i]
    if how == "replace":
        at[path[-1]] = value
    elif how == "remove":
        del at[path[-1]]
    elif how == "repeat":
        at.insert(path[-1], copy.deepcopy(at[path[-1]]))
    else:
        at[path[-1]] = [at[path[-1]]]
    return tree


@settings(quick, max_examples=examples(75, 300))
@given(
    which=st.integers(0, FRAMES - 1),
    how=st.sampled_from(["replace", "replace", "replace", "remove", "repeat", "wrap"]),
    value=st.sampled_from(ODD),
    data=st.data(),
)
def test_one_value_of_a_frame_spoilt(which: int, how: str, value: Any, data: st.DataObject) -> None:
    scene = lend(which)
    tree = msgspec.msgpack.decode(scene.frames[which])
    path = data.draw(st.sampled_from(places(tree)))
    if taken_or_refused(scene.com, N2, msgspec.msgpack.encode(spoil(tree, path, how, value))):
        del _unchanged[which]


# frames that cannot be


def test_a_peer_that_is_not_a_member() -> None:
    scene = Scene()
    assert "'n9', which is not a member of view 1" in refused(scene.com, Node("n9"), scene.frames[0])
    assert "not a member" in refused(scene.com, N1, scene.frames[0])


def test_frames_of_another_node() -> None:
    """Frames from n2 to n1, given as if n3 had sent them; and those that are meant for n3 given to n1."""
    scene = Scene()
    for data in scene.frames:
        assert "says it comes from 'n2'" in refused(scene.com, N3, data)
    stage = scene.stage
    stage.hold("n2->n3")
    stage.clients["bob"].oneway("h.x", "for n3")
    astray = decode(stage._held[(N2, N3)][-1], N2)
    moved = replace(astray, number=scene.decoded()[0].number, ack=0, ask=0)
    assert "target 'h@n3' is not on n1" in refused(scene.com, N2, encode(moved))


HEADS: list[tuple[dict[str, Any], str]] = [
    ({"source": "n3"}, "says it comes from 'n3'"),
    ({"source": ""}, "says it comes from ''"),
    ({"view": 0}, "view 0"),
    ({"view": -1}, "view -1"),
    ({"number": -1}, "frame -1"),
    ({"number": 2**63}, "far beyond 3"),
    ({"number": 3 + 4 * 256}, "far beyond 3"),
    ({"number": 0}, "an unnumbered frame carries messages"),
    ({"ack": 10_000}, "acknowledges 10000, but the last one sent is"),
    ({"ack": -1}, "acknowledges -1"),
    ({"ask": 10_000}, "asks for 10000, which was not sent"),
    ({"ask": -1}, "asks for -1"),
    ({"clock": -1}, "clock -1 is out of range"),
    ({"clock": BIG}, "out of range"),
]


@pytest.mark.parametrize(("change", "says"), HEADS, ids=[str(c) for c, _ in HEADS])
def test_the_head_of_a_frame(change: dict[str, Any], says: str) -> None:
    scene = Scene()
    assert says in refused(scene.com, N2, encode(replace(scene.decoded()[0], **change)))


G = GroupId(4, Replica("tran@n2"), 99)
F1, F2, G1, G2 = (Replica(r) for r in ("f@n1", "f@n2", "g@n1", "g@n2"))
NO_SUCH = Replica("f@n9")
MARK = (N2, 1)


def the_request(scene: Scene) -> Request:
    """A request of n2 to g@n1, the next one that is expected there."""
    seq = scene.com.hosts[G1].arrived.get(N2, 0) + 1
    some = next(m for f in scene.decoded() for m in f.messages if isinstance(m, Request) and m.target == G1)
    part = (Part(ObjectName("g"), Footprint("a")),)
    return replace(some, group=G, dests=(Dest(G1, seq), Dest(G2, 1)), parts=part, context=(), chain=())


def keyed(*keys: Any) -> tuple[Part, ...]:
    return (Part(ObjectName("g"), Footprint("a", keys)),)


REQUESTS: list[tuple[str, Any, str]] = [
    ("another view", lambda m: {"view": 2}, "view 2 in a frame of view 1"),
    ("another sender", lambda m: {"group": GroupId(1, Replica("tran@n3"), 0)}, "was not sent by n2"),
    ("target elsewhere", lambda m: {"target": G2}, "target 'g@n2' is not on n1"),
    ("target unknown", lambda m: {"target": Replica("g@n9")}, "target 'g@n9' is not on n1"),
    ("target of nothing", lambda m: {"target": Replica("@n1")}, "target '@n1' is not on n1"),
    ("target no destination", lambda m: {"target": F1}, "not among its destinations"),
    ("no destination", lambda m: {"dests": ()}, "not among its destinations"),
    ("unknown destination", lambda m: {"dests": (*m.dests, Dest(NO_SUCH, 1))}, "unknown replica or one twice"),
    ("destination twice", lambda m: {"dests": (*m.dests, m.dests[0])}, "unknown replica or one twice"),
    ("no parts", lambda m: {"parts": ()}, "do not fit the destinations"),
    ("part twice", lambda m: {"parts": m.parts * 2}, "do not fit the destinations"),
    ("part too many", lambda m: {"parts": (*m.parts, Part(ObjectName("f"), Footprint("w")))}, "do not fit"),
    ("a key twice", lambda m: {"parts": keyed(("k", "r"), ("k", "w"))}, "names a key twice"),
    ("an intention", lambda m: {"parts": keyed(("k", "iw"))}, "a strange mode"),
    ("a gap", lambda m: {"dests": (Dest(G1, m.dests[0].seq + 1), m.dests[1])}, "is the next expected"),
    ("a repetition", lambda m: {"dests": (Dest(G1, m.dests[0].seq - 1), m.dests[1])}, ""),
    ("a negative number", lambda m: {"dests": (m.dests[0], Dest(G2, -5))}, "out of range"),
    ("a huge number", lambda m: {"dests": (m.dests[0], Dest(G2, BIG))}, "out of range"),
    ("stamp 0", lambda m: {"number": 0}, "number 0"),
    ("stamp below 0", lambda m: {"number": -7}, "number -7"),
    ("stamp huge", lambda m: {"number": BIG}, "out of range"),
    ("no copies", lambda m: {"copies": 0}, "copies 0"),
    ("no path", lambda m: {"invocation": Invocation("bob", ())}, "invocation bob/"),
    ("a negative path", lambda m: {"invocation": Invocation("bob", (1, -1))}, "invocation bob/1.-1"),
    ("done too much", lambda m: {"done": m.invocation.path[0] + 1}, "done"),
    ("done below 0", lambda m: {"done": -1}, "done -1"),
    ("ancestor unknown", lambda m: {"chain": (Ancestor(ObjectName("q"), 1, ()),)}, "ancestor 'q'"),
    ("ancestor too long", lambda m: {"chain": (Ancestor(ObjectName("g"), 1, ()),)}, "of length 1"),
    ("context of nobody", lambda m: {"context": ((NO_SUCH, (MARK,)),)}, "unknown replica 'f@n9'"),
    ("context from nobody", lambda m: {"context": ((F1, ((Node("n9"), 1),)),)}, "request 1 of 'n9'"),
    ("context of 0", lambda m: {"context": ((F1, ((N2, 0),)),)}, "request 0 of 'n2'"),
    ("parts of what is no outcome", lambda m: {"did": ((F1, (MARK,)),)}, "is no outcome"),
    ("huge context", lambda m: {"context": ((F1, ((N2, BIG),)),)}, "of 'n2' to f@n1"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), [r[1:] for r in REQUESTS], ids=[r[0] for r in REQUESTS])
def test_a_request(change: Any, says: str) -> None:
    scene = Scene()
    good = the_request(scene)
    frame = scene.decoded()[0]
    first = Delivered(1, ((G2, N1, ((1, 1),)),))  # a good message in front of it must not be taken, either
    bad = replace(good, **change(good))
    text = refused(scene.com, N2, encode(replace(frame, messages=(first, bad))))
    assert says in text
    assert f"message 1 (Request) of frame {frame.number} from n2" in text
    scene.com.step(Arrived(N2, encode(replace(frame, messages=(first, good)))), 1.0)


ANNOUNCE = Announce(9, (Dest(F1, 9), Dest(F2, 9)), (Part(ObjectName("f"), Footprint("w")),))
ELSEWHERE = Announce(9, (Dest(Replica("h@n3"), 9), Dest(F2, 9)),
                     (Part(ObjectName("h"), Footprint("x")), Part(ObjectName("f"), Footprint("w"))))  # fmt: skip
OTHERS: list[tuple[str, Any, str]] = [
    ("proposal of another node", Proposal(1, G, F1, 9), "replica 'f@n1' is not on n2"),
    ("proposal of nobody", Proposal(1, G, NO_SUCH, 9), "replica 'f@n9' is not on n2"),
    ("proposal 0", Proposal(1, G, F2, 0), "proposes 0"),
    ("proposal huge", Proposal(1, G, F2, BIG), "out of range"),
    ("proposal of another view", Proposal(7, G, F2, 9), "view 7"),
    ("announces less", Proposal(1, G, F2, 8, ANNOUNCE), "below the origin stamp 9"),
    ("announces for others", Proposal(1, G, F2, 9, ELSEWHERE), "does not concern n1"),
    ("announces where it is not", Proposal(1, G, G2, 9, ANNOUNCE), "does not concern n1"),
    ("announces seq 0", Proposal(1, G, F2, 9, replace(ANNOUNCE, dests=(Dest(F1, 0), Dest(F2, 1)))), "out of range"),
    ("announces stamp 0", Proposal(1, G, F2, 9, replace(ANNOUNCE, number=0)), "number 0"),
    ("announces no parts", Proposal(1, G, F2, 9, replace(ANNOUNCE, parts=())), "do not fit"),
    ("announces nobody", Proposal(1, G, F2, 9, replace(ANNOUNCE, dests=(Dest(NO_SUCH, 1),))), "unknown replica"),
    ("knows elsewhere", Known(1, G, F1), "is not on n2"),
    ("response of another node", Response(1, G, F1, "ok", b"", False, True, (), ()), "is not on n2"),
    ("response with odd context", Response(1, G, F2, "ok", b"", False, True, ((NO_SUCH, ()),), ()), "context names"),
    ("response with odd joins", Response(1, G, F2, "ok", b"", False, True, (), ((F1, ((N2, -1),)),)), "request -1"),
    (
        "response with odd parts",
        Response(1, G, F2, "ok", b"", False, True, (), (), False, ((NO_SUCH, ()),)),
        "context names",
    ),
    ("marks of another node", Delivered(1, ((F1, N1, ((1, 2),)),)), "is not on n2"),
    ("marks from nobody", Delivered(1, ((F2, Node("n9"), ((1, 2),)),)), "unknown origin 'n9'"),
    ("marks backwards", Delivered(1, ((F2, N1, ((3, 2),)),)), "range 3..2"),
    ("marks from 0", Delivered(1, ((F2, N1, ((0, 2),)),)), "range 0..2"),
    ("marks without end", Delivered(1, ((F2, N1, ((5, BIG - 1),)),)), "out of range"),
]


@pytest.mark.parametrize(("message", "says"), [o[1:] for o in OTHERS], ids=[o[0] for o in OTHERS])
def test_other_messages(message: Any, says: str) -> None:
    scene = Scene()
    frame = replace(scene.decoded()[0], messages=(message,))
    text = refused(scene.com, N2, encode(frame))
    assert says in text
    assert f"message 0 ({type(message).__name__}) of frame {frame.number} from n2" in text


def test_requests_after_each_other_in_one_frame() -> None:
    """Sequence numbers are judged over the whole frame before any of it is taken."""
    scene = Scene()
    one = the_request(scene)
    frame = scene.decoded()[0]
    assert "is the next expected" in refused(scene.com, N2, encode(replace(frame, messages=(one, one))))


# messages that are right, but of no use


@pytest.mark.parametrize("message", [Proposal(1, G, F2, 9), Known(1, G, F2)], ids=["Proposal", "Known"])
def test_about_a_request_that_nobody_knows(message: Any) -> None:
    """Dropped by itself and told; the frame counts."""
    scene = Scene()
    frame = replace(scene.decoded()[0], messages=(message,))
    effects = scene.com.step(Arrived(N2, encode(frame)), 1.0)
    assert effects == [Dropped(N2, f"{type(message).__name__} for {G}, which is not known here")]
    assert G not in scene.com.waiting


def test_a_response_that_nobody_waits_for() -> None:
    """It comes late after a deadline, or after its client has left: only the link has moved."""
    scene = Scene()
    frame = scene.decoded()[0]
    answer = Response(1, G, F2, "ok", b"", False, True, (), ())
    other = Scene().com
    other.step(Arrived(N2, encode(replace(frame, messages=()))), 1.0)
    assert scene.com.step(Arrived(N2, encode(replace(frame, messages=(answer,)))), 1.0) == []
    assert fingerprint(scene.com) == fingerprint(other)


# frames that come again, or too early (protocol.md §9.1)


@pytest.mark.parametrize("which", range(FRAMES))
def test_a_frame_that_comes_again(which: int) -> None:
    scene = scene_before(which + 1)
    before = fingerprint(scene.com)
    number = scene.decoded()[which].number
    effects = scene.com.step(Arrived(N2, scene.frames[which]), 1.0)
    if number:
        assert len([e for e in effects if isinstance(e, Dropped) and f"frame {number} from n2 again" in e.why]) == 1
    assert {type(e) for e in effects} <= {Dropped, Wake}
    assert fingerprint(scene.com) == before


def test_all_frames_again_in_any_order() -> None:
    scene = scene_before(FRAMES)
    before = fingerprint(scene.com)
    for data in [*reversed(scene.frames), *scene.frames]:
        for effect in scene.com.step(Arrived(N2, data), 1.0):
            assert isinstance(effect, Dropped | Wake)
    assert fingerprint(scene.com) == before


@settings(quick, max_examples=30)
@given(order=st.permutations(range(FRAMES)))
def test_frames_in_any_order_come_to_the_same(order: list[int]) -> None:
    """An early frame waits on the link: requests land in the order in which they were sent."""
    scene = Scene()
    expected = [m.group for f in scene.decoded() for m in f.messages if isinstance(m, Request)]
    landed: list[GroupId] = []
    for which in order:
        effects = scene.com.step(Arrived(N2, scene.frames[which]), 1.0)
        landed += [e.group for e in effects if isinstance(e, Landed)]
    assert landed == expected
    assert scene.com.links[N2]._early == {}


def test_an_ask_is_answered_with_what_is_unacknowledged() -> None:
    """Asking again and again costs frames, but changes nothing."""
    scene = Scene()
    link = scene.com.links[N2]
    unacked = [data for _, data in link._unacked]
    assert unacked
    ask = encode(Frame(N2, 1, 0, 0, link._unacked[0][0], 1))
    scene.com.step(Arrived(N2, ask), 1.0)
    before = fingerprint(scene.com)
    assert scene.com.step(Arrived(N2, ask), 1.0) == [Transmit(N2, data) for data in unacked]
    assert fingerprint(scene.com) == before
