"""Transactions at one node: who may decide, and what becomes of an outcome that nobody can take yet."""

import pytest

from framework.com.core import Com
from framework.com.events import Begin, Tick, Veto
from framework.com.view import Directory, Placement, View, tran
from framework.errors import BadRequest, Unavailable
from framework.footprint import Relation
from framework.ids import Invocation, Node

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
        patch.setattr("framework.com.deciding.present", nobody)
        com.step(Veto(NAME, "enough"), 1.0)
        com.step(Tick(), 2.0)
    assert NAME not in com.trans.outcomes
    com.step(Tick(), 3.0)
    assert com.trans.outcomes[NAME] == (False, "enough")


def test_only_what_is_open_is_vetoed(com):
    with pytest.raises(BadRequest, match="n1 knows of no transaction c/1"):
        com.step(Veto(NAME, "enough"), 0.0)
    com.step(Begin("c", 1, 5.0), 0.0)
    assert com.trans.known() == {NAME: "open"}
    com.step(Veto(NAME, "enough"), 1.0)
    assert com.trans.known() == {}
    with pytest.raises(BadRequest, match="c/1 is over: it was aborted"):
        com.step(Veto(NAME, "enough"), 2.0)


def test_without_a_tran_there_is_nothing_to_veto():
    nodes = [Node("n1")]
    plain = Com(nodes[0], Directory(View(1, ("n1",)), [Placement("o", Relation([]), nodes)]))
    with pytest.raises(BadRequest, match="no transactions"):
        plain.step(Veto(NAME, "enough"), 0.0)
