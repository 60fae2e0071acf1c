"""Transactions at one node: who may decide, and what becomes of an outcome that nobody can take yet."""

import msgspec
import pytest

from framework.com.core import Com
from framework.com.events import Begin, Tick, Veto
from framework.com.messages import Ancestor, Dest, Frame, Part, Request
from framework.com.tran import known
from framework.com.view import Directory, Placement, View, tran
from framework.errors import BadMessage, BadRequest, Unavailable
from framework.footprint import Footprint, Relation
from framework.ids import TRAN, GroupId, Invocation, Node, Replica, Sid

NAME = Invocation("c", (1,))


@pytest.fixture
def com():
    nodes = [Node("n1")]
    return Com(nodes[0], Directory(View(1, ("n1",)), [Placement("o", Relation([]), nodes), tran(nodes)]))


def test_an_outcome_that_finds_no_tran_with_a_state_is_sent_when_there_is_one(com, monkeypatch):
    def nobody(_com, _event):
        raise Unavailable("tran: 0 of its replicas")

    com.step(Begin("c", 1, 5.0), 0.0)
    with monkeypatch.context() as patch:
        patch.setattr("framework.com.tran.present", nobody)
        com.step(Veto(NAME, "enough"), 1.0)
        com.step(Tick(), 2.0)
    assert NAME not in com.trans.outcomes
    com.step(Tick(), 3.0)
    assert com.trans.outcomes[NAME] == (False, "enough")


def test_only_what_is_open_is_vetoed(com):
    with pytest.raises(BadRequest, match="n1 knows of no transaction c/1"):
        com.step(Veto(NAME, "enough"), 0.0)
    com.step(Begin("c", 1, 5.0), 0.0)
    assert known(com.trans) == {NAME: "open"}
    com.step(Veto(NAME, "enough"), 1.0)
    assert known(com.trans) == {}
    with pytest.raises(BadRequest, match="c/1 is over: it was aborted"):
        com.step(Veto(NAME, "enough"), 2.0)


def test_without_a_tran_there_is_nothing_to_veto():
    nodes = [Node("n1")]
    plain = Com(nodes[0], Directory(View(1, ("n1",)), [Placement("o", Relation([]), nodes)]))
    with pytest.raises(BadRequest, match="no transactions"):
        plain.step(Veto(NAME, "enough"), 0.0)


def vote(**change):
    """From n2 to tran@n1: a part of c/1 has ended well, and there are two of them."""
    part = Part(TRAN, Footprint("vote", (("c/1", "w"),)))
    dests = (Dest(Replica("tran@n1"), 1), Dest(Replica("tran@n2"), 1))
    sid = Sid(4, Replica("o@n2"))
    sent = Request(
        1, GroupId(4, sid.replica, 1), Invocation("c", (1, 2, 0, 0)), "oneway", dests[0].replica, dests, (part,), 5,
        True, (), (), 1, 0, b"2",
    )  # fmt: skip
    return Frame(Node("n2"), 1, 1, 0, 0, 6, (msgspec.structs.replace(sent, **change),))


ROOT = Ancestor(TRAN, 1, (Replica("tran@n2"),), 2)
BAD_VOTES = [
    ({"args": b"two"}, "does not say of how many"),
    ({"args": b""}, "does not say of how many"),
    ({"args": b"1" * 10}, "does not say of how many"),
    ({"invocation": Invocation("c", (1, 2, 0))}, "no vote of a part"),
    ({"chain": (Ancestor("o", 1, (), 2),)}, "2 votes for 'o'"),
    ({"chain": (Ancestor("o", 1, ()), ROOT)}, "2 votes for 'tran'"),
    ({"chain": (ROOT._replace(votes=-1),)}, "-1 votes"),
    ({"did": ((Replica("o@n9"), ((Node("n2"), 1),)),)}, "context names"),
]


@pytest.mark.parametrize(("change", "says"), BAD_VOTES, ids=[str(c) for c, _ in BAD_VOTES])
def test_votes_that_cannot_be_are_refused(change, says):
    nodes = [Node("n1"), Node("n2")]
    com = Com(nodes[0], Directory(View(1, ("n1", "n2")), [Placement("o", Relation([]), nodes), tran(nodes)]))
    com.checker.brought(vote(chain=(ROOT,)), 5)
    with pytest.raises(BadMessage, match=says):
        com.checker.brought(vote(**change), 5)
