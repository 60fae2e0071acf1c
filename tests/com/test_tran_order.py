"""Order inside of and around transactions (protocol.md §7): each rule in a conversation of few nodes."""

from framework.com.events import Begin, Cancel, Collect, Decide
from framework.com.receipt import CREC, DREC, SREC
from framework.ids import Invocation
from tests.paper.stage import Client, Stage
from tests.paper.test_p1_transactions import ended

NAME = Invocation("T", (9,))


def stage(conflicts: str, nodes: str = "n1 n2 n3", at: str = "n1 n2") -> Stage:
    s = Stage(nodes)
    s.object("o", at, conflicts)
    s.transactions()
    return s


def begin(s: Stage, node: str) -> Client:
    client = s.client("T", node)
    s.do(node, Begin("T", 9, 1000.0))
    client.next = 10
    return client


def part(client: Client, what: str, name: str, receipt=CREC):
    return client.send(what, name, "sync", receipt, tran=9)


def decide(client: Client) -> None:
    client.stage.do(client.node, Decide("T", 50, 9, True))


def done(s: Stage, name: str, *at: str) -> None:
    for replica in at:
        s.instance(name, replica).commit()


def wait(s: Stage) -> None:
    """Let the deadlock detector look often enough."""
    for _ in range(12):
        s.tick(s.timing.delta)


def aborts(s: Stage) -> list[str]:
    return [str(name) for name, outcome in s.com("n1").trans.outcomes.last.items() if not outcome.commit]


def test_a_part_does_not_pass_its_predecessor() -> None:
    """P comes from somebody else and is running; the part Y follows it, for its caller has heard of it."""
    s = stage("x/y p/p")
    t, u = begin(s, "n3"), s.client("U", "n3")
    part(t, "o.x", "X")
    done(s, "X", "o@n1", "o@n2")
    u.sync("o.p", DREC, "P1")
    u.sync("o.p", DREC, "P2")  # it waits for P1
    done(s, "P1", "o@n1")
    t.send("o.y", "Y", "sync", CREC, tran=9, sessions=(u.session,))
    assert "Y" not in s.delivered("o@n2")
    done(s, "P1", "o@n2")
    assert s.delivered("o@n2")[-2:] in (["P2", "Y"], ["Y", "P2"]) and s.delivered("o@n1")[-1] == "Y"
    assert s.finish().violations == []


def test_a_predecessor_that_waits_for_the_transaction_is_a_deadlock() -> None:
    """An independent call of the transaction that conflicts with what that holds, and then a part that follows it."""
    s = stage("x/p p/y", at="n2")
    s.object("a", "n1", "m/m")
    s.client("C", "n3").sync("a.m", SREC, "root")
    root = s.instance("root", "a@n1")
    root.sync("o.x", SREC, "X")
    done(s, "X", "o@n2")
    root.send("o.p", "P", "oneway", independent=True)
    root.sync("o.y", SREC, "Y")
    assert s.delivered("o@n2") == ["X"]
    wait(s)
    assert aborts(s) == ["C/1"]
    assert "deadlock: C/1 waits for C/1.2" in s.com("n1").trans.outcomes[Invocation("C", (1,))].why
    s.do("n1", Cancel(root.sid, 3))
    root.abort()
    done(s, "P", "o@n2")
    assert ended(s) == {"X": [False], "root": [False], "P": [True]}
    assert s.finish().violations == []


def test_one_way_calls_leave_with_the_commit() -> None:
    """As above, but the call is an ordinary one-way call: it waits for nobody, and nobody for it."""
    s = stage("x/p p/y", at="n2")
    s.object("a", "n1", "m/m")
    client = s.client("C", "n3")
    client.sync("a.m", SREC, "root")
    root = s.instance("root", "a@n1")
    root.sync("o.x", SREC, "X")
    done(s, "X", "o@n2")
    s.do("n1", root.event("o.p", "oneway", None))
    root.sync("o.y", SREC, "Y")
    done(s, "Y", "o@n2")
    assert s.delivered("o@n2") == ["X", "Y"]
    root.commit()
    assert s.delivered("o@n2") == ["X", "Y", "C/1.2"]
    assert client.received, "its caller does not wait for it"
    client.oneway("o.y", "after")  # it conflicts with the one-way call, which is running
    assert s.waiting("o@n2") == ["after"]
    done(s, "C/1.2", "o@n2")
    done(s, "after", "o@n2")
    assert s.finish().violations == []


def test_one_way_calls_of_what_fails_do_not_leave() -> None:
    s = stage("x/p", at="n2")
    s.object("a", "n1", "m/m")
    for name in ("alone", "root"):
        s.client(name, "n3").sync("a.m", SREC, name)
        instance = s.instance(name, "a@n1")
        if name == "root":
            instance.sync("o.x", SREC, "X")
            part = s.instance("X", "o@n2")
            s.do("n2", part.event("a.m", "oneway", None))
            part.commit()
        s.do("n1", instance.event("o.p", "oneway", None))
        instance.abort()
    assert s.delivered("o@n2") == ["X"]
    assert s.delivered("a@n1") == ["alone", "root"]
    assert s.finish().violations == []


def test_one_way_calls_of_a_part_leave_with_the_whole() -> None:
    s = stage("x/x", at="n2")
    s.object("a", "n1", "m/m b/b")
    s.client("C", "n3").sync("a.m", SREC, "root")
    root = s.instance("root", "a@n1")
    root.sync("o.x", SREC, "X")
    part = s.instance("X", "o@n2")
    s.do("n2", part.event("a.b", "oneway", None))
    part.commit()
    assert s.delivered("a@n1") == ["root"]
    root.commit()
    assert s.delivered("a@n1") == ["root", "C/1.1.1"]
    done(s, "C/1.1.1", "a@n1")
    assert s.finish().violations == []


def test_the_transaction_of_a_client_is_a_sender_of_its_own() -> None:
    """A call beside the transaction, by the same client, waits for it; its next part does not wait for that call."""
    s = stage("x/p p/y")
    t = begin(s, "n3")
    part(t, "o.x", "X")
    done(s, "X", "o@n1", "o@n2")
    t.oneway("o.p", "P")
    part(t, "o.y", "Y")
    done(s, "Y", "o@n1", "o@n2")
    decide(t)
    assert s.delivered("o@n1") == s.delivered("o@n2") == ["X", "Y", "P"]
    assert aborts(s) == []
    done(s, "P", "o@n1", "o@n2")
    assert s.finish().violations == []


def test_the_session_follows_its_transaction_when_that_is_over() -> None:
    """What the client sends after its commit comes after what it called in its transaction, though they are
    compatible: n2 has performed X by then, or else the commit waits for it."""
    s = stage("p/x p/p z/z")
    u, t = s.client("U", "n1"), begin(s, "n3")
    u.oneway("o.p", "P")
    part(t, "o.x", "X", DREC)
    done(s, "P", "o@n1")
    done(s, "X", "o@n1")
    decide(t)
    assert NAME not in s.com("n1").trans.outcomes, "n2 has not performed X"
    done(s, "P", "o@n2")
    done(s, "X", "o@n2")
    assert s.com("n1").trans.outcomes[NAME].commit
    t.oneway("o.z", "Z")
    assert s.delivered("o@n1") == s.delivered("o@n2") == ["P", "X", "Z"]
    done(s, "Z", "o@n1", "o@n2")
    assert s.finish().violations == []


def test_answers_of_a_transaction_can_be_collected_when_it_is_over() -> None:
    s = stage("x/x")
    t = begin(s, "n3")
    t.send("o.x", "X", "async", None, tran=9)
    done(s, "X", "o@n1", "o@n2")
    decide(t)
    s.do("n3", Collect("T", 10, CREC))
    assert sorted(t.answers(10)) == ["o@n1", "o@n2"]
    assert s.finish().violations == []


def test_a_commit_waits_until_each_replica_of_a_part_is_prepared() -> None:
    """n1 has answered Y. n2 has not: there Y waits for P, and passes Q, which waits for X."""
    s = stage("x/q q/y p/y")
    u, v, t = s.client("U", "n3"), s.client("V", "n3"), begin(s, "n3")
    u.oneway("o.p", "P")
    part(t, "o.x", "X")
    done(s, "X", "o@n1", "o@n2")
    v.oneway("o.q", "Q")
    part(t, "o.y", "Y", DREC)
    done(s, "P", "o@n1")
    done(s, "Y", "o@n1")
    decide(t)
    assert s.delivered("o@n1") == ["P", "X", "Y"]
    assert s.delivered("o@n2") == ["P", "X"]
    done(s, "P", "o@n2")
    done(s, "Y", "o@n2")
    assert s.delivered("o@n1") == ["P", "X", "Y", "Q"]
    assert s.delivered("o@n2") == ["P", "X", "Y", "Q"]
    done(s, "Q", "o@n1", "o@n2")
    assert s.finish().violations == []


def test_a_part_passes_only_where_all_its_destinations_would() -> None:
    """T has read at n1 alone, and P waits for that there. At n2 it runs. If Y passed P at n1 they would differ."""
    s = stage("r/p p/y")
    u, t = s.client("U", "n3"), begin(s, "n3")
    part(t, "o.r@n1", "R", SREC)
    done(s, "R", "o@n1")
    u.oneway("o.p", "P")
    part(t, "o.y", "Y")
    assert (s.delivered("o@n1"), s.delivered("o@n2")) == (["R"], ["P"])
    wait(s)
    assert aborts(s) == ["T/9"]
    done(s, "P", "o@n1", "o@n2")
    assert s.finish().violations == []


def test_a_request_for_all_does_not_wait_for_one_at_a_single_replica() -> None:
    """R is at n1 only and waits for X. P conflicts with R, not with X: it has the same place at both replicas."""
    s = stage("x/r r/p p/y")
    u, t = s.client("U", "n3"), begin(s, "n3")
    part(t, "o.x", "X")
    done(s, "X", "o@n1", "o@n2")
    u.oneway("o.r@n1", "R")
    s.client("V", "n3").oneway("o.p", "P")
    part(t, "o.y", "Y")
    assert s.delivered("o@n1") == s.delivered("o@n2") == ["X", "P"]
    done(s, "P", "o@n1", "o@n2")
    done(s, "Y", "o@n1", "o@n2")
    decide(t)
    assert s.delivered("o@n1") == ["X", "P", "Y", "R"]
    assert aborts(s) == []
    done(s, "R", "o@n1")
    assert s.finish().violations == []


def test_a_call_back_that_is_not_settled_is_named_also_where_it_runs() -> None:
    """D came back to A before its predecessor P, which waits for A. W follows D, and so P."""
    s = Stage("n1 n2 n3 n4")
    s.object("a", "n1", "w/u")
    s.object("b", "n3", "x/x")
    s.object("c", "n4", "y/y")
    s.client("T", "n2").sync("a.w", SREC, "A")
    u = s.client("U", "n2")
    u.oneway("a.u", "P")
    u.sync("b.x", SREC, "I")
    done(s, "I", "b@n3")
    s.instance("A", "a@n1").sync("b.x", SREC, "B")
    s.instance("B", "b@n3").sync("a.z", SREC, "D")
    assert s.delivered("a@n1") == ["A", "D"]
    s.instance("D", "a@n1").oneway("c.y", "C")
    s.instance("C", "c@n4").oneway("a.v", "W")
    assert s.waiting("a@n1") == ["P", "W"]
    done(s, "D", "a@n1")
    done(s, "B", "b@n3")
    done(s, "A", "a@n1")
    assert s.delivered("a@n1") == ["A", "D", "P", "W"]
    for name, at in (("P", "a@n1"), ("W", "a@n1"), ("C", "c@n4")):
        done(s, name, at)
    assert s.finish().violations == []


def test_a_commit_does_not_wait_for_itself() -> None:
    """P reads at n2 alone and waits for X there. Y follows P there, and nowhere else: n1 answers it. If T committed
    then, X would stay at n2 until Y has been performed, Y waits for P, and P for X."""
    s = stage("x/r")
    s.object("a", "n3", "m/m")
    s.client("C", "n3").sync("a.m", SREC, "root")
    root = s.instance("root", "a@n3")
    root.sync("o.x", CREC, "X")
    done(s, "X", "o@n1", "o@n2")
    root.send("o.r@n2", "P", "oneway", independent=True)
    root.sync("o.y", DREC, "Y")
    assert (s.delivered("o@n1"), s.delivered("o@n2")) == (["X", "Y"], ["X"])
    done(s, "Y", "o@n1")
    root.commit()
    wait(s)
    assert aborts(s) == ["C/1"]
    assert s.delivered("o@n2") == ["X", "P", "Y"], "Y is cancelled"
    done(s, "P", "o@n2")
    assert s.finish().violations == []


def follows_another(s: Stage, t: Client) -> None:
    """X is held. P of U waits for it at n2, and T hears of P at a: so Y follows P at n2, and n1 answers Y."""
    u = s.client("U", "n3")
    part(t, "o.x", "X")
    done(s, "X", "o@n1", "o@n2")
    u.oneway("o.r@n2", "P")
    u.sync("a.m", SREC, "M")
    done(s, "M", "a@n3")
    part(t, "a.m", "N", SREC)
    done(s, "N", "a@n3")
    part(t, "o.y", "Y", DREC)
    done(s, "Y", "o@n1")


def test_nor_does_it_wait_for_itself_behind_a_call_of_another() -> None:
    s = stage("x/r")
    s.object("a", "n3", "m/m")
    t = begin(s, "n3")
    follows_another(s, t)
    assert s.delivered("o@n2") == ["X"]
    decide(t)
    wait(s)
    assert aborts(s) == ["T/9"]
    assert s.delivered("o@n2") == ["X", "P", "Y"], "Y is cancelled"
    done(s, "P", "o@n2")
    assert s.finish().violations == []


def test_two_commits_do_not_wait_for_each_other() -> None:
    """U holds Q at n2 alone, and Y of T waits for it there. V of U waits for X of T there. n1 answers both."""
    s = stage("x/v q/y")
    t, u = begin(s, "n3"), s.client("U", "n1")
    s.do("n1", Begin("U", 9, 1000.0))
    u.next = 10
    part(t, "o.x", "X")
    done(s, "X", "o@n1", "o@n2")
    part(u, "o.q@n2", "Q", SREC)
    done(s, "Q", "o@n2")
    part(t, "o.y", "Y", DREC)
    done(s, "Y", "o@n1")
    decide(t)
    part(u, "o.v", "V", DREC)
    s.do("n1", Decide("U", 50, 9, True))
    while not aborts(s):
        s.tick(s.timing.delta)
    assert aborts(s) == ["U/9"]
    done(s, "Y", "o@n2")
    assert s.com("n1").trans.outcomes[NAME].commit
    assert s.finish().violations == []
