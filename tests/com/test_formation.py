"""Groups that begin one after the other on the same nodes: what names requests of one says nothing in another.

Where every node has lost the number of its last view, versions, clocks and numbers of requests begin anew, and are the
same again. Clients live on, and bring what they were given."""

from typing import Any

import msgspec
import pytest

from framework.com.core import Com
from framework.com.events import Arrived, Installed, Out, Session, Tick, Transmit
from framework.com.messages import Frame, encode
from framework.com.outsider import Admitted, Outsider
from framework.com.receipt import SREC
from framework.com.telling import Dropped, Forgotten
from framework.com.view import NOBODY, Directory, Holding, Placement, View
from framework.com.words import (
    Accept,
    AnyWord,
    Ballot,
    Decided,
    Decision,
    Excluded,
    Prepare,
    Promise,
    Report,
    decode,
)
from framework.errors import BadMessage, BadRequest, Unavailable
from framework.footprint import Relation
from framework.ids import Node, ObjectName, Replica
from tests.com.fingerprint import fingerprint
from tests.paper.stage import Stage

THREE = tuple(Node(f"n{i}") for i in (1, 2, 3))
N1, N2, N3 = THREE
ONE, TWO = b"1" * 16, b"2" * 16
W = Relation([("w", "w")])


def stage(formation: bytes) -> Stage:
    s = Stage("i j k", formation=formation)
    s.object("f", "k", "w/w")
    return s


def of_a_group_that_is_over(formation: bytes = ONE) -> Session:
    """It names three requests to k, none of which is known to be delivered."""
    s = stage(formation)
    client = s.client("T", "i")
    s.hold("i->k")
    for _ in range(3):
        client.oneway("f.w@k")
    assert client.session is not None and client.session.context
    return client.session


# sessions


def test_a_call_follows_nothing_of_another_formation() -> None:
    """It waited for requests that nobody had sent, and all that conflicts with it waited behind it."""
    s = stage(TWO)
    old, fresh = s.client("T", "j"), s.client("U", "j")
    old.send("f.w@k", "m1", "sync", SREC, call=7, sessions=(of_a_group_that_is_over(),))
    fresh.sync("f.w@k", SREC, "m2")
    assert s.carried("m1") == {}
    assert [e for _, e in s.heard if isinstance(e, Forgotten)] == [Forgotten("T", 7)]
    assert s.finish().violations == []
    assert s.delivered("f@k") == ["m1", "m2"]


def test_within_a_formation_a_session_counts() -> None:
    s = stage(ONE)
    client = s.client("T", "i")
    s.hold("i->k")
    client.oneway("f.w@k", "m1")
    client.move("j")
    client.oneway("f.w@k", "m2")
    assert s.carried("m2") == {"f@k": {"m1"}}
    assert not [e for _, e in s.heard if isinstance(e, Forgotten)]


def test_only_the_foreign_one_of_several_sessions_is_forgotten() -> None:
    s = stage(TWO)
    one = s.client("U", "i")
    s.hold("i->k")
    one.oneway("f.w@k", "m1")
    assert one.session is not None
    s.client("T", "j").send("f.w@k", "m2", sessions=(of_a_group_that_is_over(), one.session))
    assert s.carried("m2") == {"f@k": {"m1"}}


@pytest.mark.parametrize("change", [{"view": 9}, {"clock": 1 << 60}, {"context": (("f@k", (("j", 1 << 50),)),)}])
def test_nothing_of_a_foreign_session_is_asked_for(change: dict[str, Any]) -> None:
    """Its view may be later than ours and its clock far ahead: a client was sent from node to node, for ever."""
    session = msgspec.structs.replace(of_a_group_that_is_over(), **change)
    s = stage(TWO)
    s.client("T", "j").send("f.w@k", "m", sessions=(session,))
    assert s.com("j").clock < 10
    own = msgspec.structs.replace(session, formation=TWO)
    with pytest.raises((Unavailable, BadRequest)):
        s.client("U", "j").send("f.w@k", "n", sessions=(own,))


def test_who_guesses_an_identity_is_a_fool() -> None:
    """None of the bits of one says anything about another: the driver draws them (framework.orb.node)."""
    session = of_a_group_that_is_over(b"")
    assert session.formation == b""
    s = stage(ONE)
    s.client("T", "j").send("f.w@k", "m", sessions=(session,))
    assert s.carried("m") == {}


# what nodes say to each other


def member(formation: bytes = ONE, version: int = 1) -> Com:
    directory = Directory(View(version, THREE, (1, 1, 1), (1, 1, 1), formation=formation), [Placement("f", W, THREE)])
    com = Com(N1, directory)
    com.step(Tick(), 0.0)
    return com


WORDS: list[AnyWord] = [
    Prepare(N2, 1, 1, Ballot(1, N2), (N3,), formation=TWO),
    Accept(N2, 1, 1, Ballot(1, N2), Decision(View(2, (N1, N2), (1, 1), (1, 1), formation=TWO), (N3,)), formation=TWO),
    Decided(N2, Decision(View(2, (N1, N2), (1, 1), (1, 1), formation=TWO), (N3,))),
    Decided(N2, Decision(View(2, (N2, N3), (1, 1), (1, 1), formation=TWO), (N1,))),
    Excluded(N2, View(2, (N2, N3), (1, 1), (1, 1), formation=TWO)),
]


@pytest.mark.parametrize("word", WORDS, ids=lambda w: type(w).__name__)
def test_a_word_of_another_formation_is_dropped(word: AnyWord) -> None:
    com = member()
    before = fingerprint(com)
    effects = com.step(Arrived(N2, encode(word)), 1.0)
    assert [type(e) for e in effects] == [Dropped] and "formation" in str(effects[0])
    assert fingerprint(com) == before


@pytest.mark.parametrize("frame", [Frame(N2, 1, 1, 0, 0, 5, (), formation=TWO), Frame(N2, 3, 0, 0, 0, 5)])
def test_a_frame_of_another_formation_is_dropped(frame: Frame) -> None:
    """A node may get it while it is an outsider, and keep it until it is a member: of which group, nobody knows yet."""
    com = member()
    before = fingerprint(com)
    effects = com.step(Arrived(N2, encode(frame)), 1.0)
    assert [type(e) for e in effects] == [Dropped]
    assert fingerprint(com) == before


def test_what_a_member_says_names_its_formation() -> None:
    com = member(ONE)
    said = [decode(e.data, N1) for e in com.step(Tick(), 100.0) if isinstance(e, Transmit)]
    assert said and all(isinstance(f, Frame) and f.formation == ONE for f in said)


@pytest.mark.parametrize("word", [Promise, Accept])
def test_a_decision_for_another_formation_is_refused(word: type[Any]) -> None:
    decision = Decision(View(2, (N1, N2), (1, 1), (1, 1), formation=TWO), (N3,))
    ballot = Ballot(1, N2)
    said = (
        Accept(N2, 1, 1, ballot, decision, formation=ONE)
        if word is Accept
        else Promise(N2, 1, 1, ballot, Report(), accepted=(ballot, decision), formation=ONE)
    )
    with pytest.raises(BadMessage, match="another formation"):
        member().step(Arrived(N2, encode(said)), 1.0)


# where it comes from


def test_the_one_that_makes_the_first_view_names_it_and_all_that_follow_keep_that() -> None:
    directory = Directory(View(1, (N1,)), [Placement("f", W, (N1,))], (N1,))
    (admitted,) = Outsider(N1, 3, directory, formation=ONE).step(Tick(), 0.0)
    assert isinstance(admitted, Admitted) and admitted.view.formation == ONE
    com = member(ONE)
    for peer in (N2, N3):
        com.step(Arrived(peer, encode(Frame(peer, 1, 0, 0, 0, 1, formation=ONE))), 1.0)
    decision = Decision(View(2, (N1, N2), (1, 1), (1, 1), formation=ONE), (N3,))
    effects = com.step(Arrived(N2, encode(Decided(N2, decision))), 2.0)
    assert [e.view.formation for e in effects if isinstance(e, Installed)] == [ONE]
    assert not [e for e in effects if isinstance(e, Out)]


# which objects have lost what was done before


def begun(view: View, durable: bool = False, holds: tuple[Holding, ...] = ()) -> Com:
    objects = [Placement("f", W, THREE, durable=durable), Placement("g", W, THREE)]
    return Com(N1, Directory(view, objects), holds=holds)


def new(com: Com) -> set[str]:
    return {name for name in ("f", "g") if com.handover.is_new(ObjectName(name))}


def test_objects_that_begin_with_nothing_are_known() -> None:
    f = tuple(Replica(f"f@{n}") for n in THREE)
    since, seeds = (4, 4, 4), ((f[1], f[1]),)
    assert new(begun(View(4, THREE, since, since))) == {"f", "g"}
    assert new(begun(View(4, THREE, since, since, f, seeds))) == {"g"}, "somebody holds a state of f"
    assert new(begun(View(4, THREE, since, since, f, ((f[1], NOBODY),)))) == {"f", "g"}


def test_who_has_joined_takes_what_is_on_disk_for_kept() -> None:
    view = View(4, THREE, (4, 2, 2), (1, 1, 1))
    assert new(begun(view, durable=True)) == {"g"}
    assert new(begun(view)) == {"f", "g"}
