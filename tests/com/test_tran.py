"""Transactions at one node: who may decide, and what becomes of an outcome that nobody can take yet."""

import msgspec
import pytest

from framework.com import tran_host
from framework.com.core import Com
from framework.com.events import Begin, Decide, Tick, Veto
from framework.com.messages import Ancestor, Dest, Frame, Part, Request
from framework.com.outcome import Decided, Outcome
from framework.com.receipt import CREC
from framework.com.replies import Replies
from framework.com.tran import known
from framework.com.view import Directory, Placement, View, tran
from framework.errors import BadMessage, BadRequest, Unavailable
from framework.footprint import Footprint, Relation
from framework.ids import TRAN, GroupId, Invocation, Node, Replica, Sid
from tests.paper.stage import Stage

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


@pytest.mark.parametrize("commit", [True, False])
def test_what_was_decided_is_never_decided_otherwise(monkeypatch, commit):
    """Nothing is left of the reply; a client that asks what became of its transaction would abort one that nobody has
    decided."""
    monkeypatch.setattr(tran_host, "BOUND", 1)
    stage = Stage("n1 n2")
    stage.object("g", "n1 n2", "w/w", at_once=True)
    stage.transactions()
    clients = {who: stage.client(who, "n1") for who in ("a", "b")}
    for com in (stage.com("n1"), stage.com("n2")):
        com.hosts[com.trans.at].replies.bound = 0
    for who, number in ("a", 1), ("b", 1), ("b", 4), ("b", 7):
        stage.do("n1", Begin(who, number, float("inf")))
        clients[who].next = number + 1
        clients[who].send("g.w", "", "sync", CREC, tran=number)
        stage.do("n1", Decide(who, number + 2, number, commit))
    stage.do("n1", Decide("a", 4, 1, not commit))
    (answer,) = clients["a"].received[-1].responses
    assert answer.status == "ok"
    assert answer.body == Outcome(commit).told
    for node in ("n1", "n2"):
        assert stage.com(node).trans.outcomes[Invocation("a", (1,))] == (commit, "")
    assert stage.finish().violations == []


def test_what_votes_have_decided_is_never_decided_otherwise(monkeypatch):
    """There was no commit that could be performed again: a client that asks is the first one to call tran."""
    monkeypatch.setattr(tran_host, "BOUND", 0)
    stage = Stage("n1 n2")
    stage.object("g", "n1 n2", "w/w", at_once=True)
    stage.object("h", "n1 n2", "w/w", at_once=True)
    stage.transactions()
    client = stage.client("a", "n1")
    stage.do("n1", Begin("a", 1, float("inf")))
    client.next = 2
    client.send("g.w h.w", "", "sync", CREC, tran=1, votes=True)
    for call in 4, 5:
        stage.do("n1", Decide("a", call, 1, False))
        (answer,) = client.received[-1].responses
        assert (answer.status, answer.body) == ("ok", b"commit")
        for node in ("n1", "n2"):
            com = stage.com(node)
            assert com.trans.outcomes[NAME._replace(client="a")].commit
            assert Invocation("a", (1, 0)) not in dict(com.hosts[com.trans.at].replies.all())
    assert stage.finish().violations == []


def test_what_was_decided_goes_with_the_state_of_tran():
    first, second = Replies(), Replies()
    for number, commit in (1, True), (4, False), (5, False), (900, True):
        first.decided.add(Invocation("c", (number,)), commit)
        first.begin(Invocation("c", (number, 0)), 1, 0).outcome = "ok"
        first.drop(Invocation("c", (number, 0)))
    first.decided.add(Invocation("c", (7,)), True)  # by votes: no call of tran was performed
    second.adopt(first.export())
    second.adopt(Replies().export())
    for number, commit in (1, True), (4, False), (5, False), (900, True):
        assert second.decided.get(Invocation("c", (number,))) == (commit, "")
        assert Invocation("c", (number, 0)) in second
        reply = second.get(Invocation("c", (number, 0)))
        assert reply.status == "ok" and reply.body == Outcome(commit).told
    assert second.decided.get(Invocation("c", (7,))) == (True, "") and Invocation("c", (7, 0)) not in second
    for other in Invocation("c", (2, 0)), Invocation("d", (1, 0)), Invocation("c", (1, 1)), Invocation("c", (1, 0, 0)):
        assert other not in second and second.get(other) is None
    assert not Decided()
