"""P3 §4.1, protocol.md §3.4: instances on different keys are compatible; they share a cid and inherit nothing."""

from tests.paper.stage import Stage


def test_compatible_by_keys_share_a_cid():
    stage = Stage("c k")
    stage.object("o", "k", "w/w")
    stage.client("T1", "c").oneway("o.w(x)", "a")
    stage.client("T2", "c").oneway("o.w(y)", "b")
    assert stage.instance("a", "o@k").cid == stage.instance("b", "o@k").cid


def test_compatible_by_keys_do_not_wait():
    stage = Stage("c i k l")
    stage.object("o", "i", "w/w")
    stage.object("d", "k l", "a/a b/b", at_once=True)
    stage.hold("l->k")
    stage.client("T1", "c").oneway("o.w(x)", "op1")
    stage.instance("op1", "o@i").oneway("d.a@k,l", "m1")
    stage.instance("op1", "o@i").commit()
    stage.client("T2", "c").oneway("o.w(y)", "op2")
    stage.instance("op2", "o@i").oneway("d.b@k", "m2")
    assert stage.concurrent("m1", "m2")
    assert stage.delivered("d@k") == ["m2"]
