"""What has to be on disk before anybody is told of a transaction, at one node; and what is known after a crash."""

import msgspec
import pytest

from framework.com.core import Com
from framework.com.event import Decided, Doubt, Resolved
from framework.com.events import Completed, Deliver, Outgoing, Received, Safe, Settle, Submit, Tick
from framework.com.handed import Kept, Part, Told, read_part
from framework.com.lasting import merged, told_in, with_commits
from framework.com.receipt import CREC
from framework.com.view import NOBODY, Directory, Placement, View, tran
from framework.footprint import WRITE, Footprint, Relation
from framework.ids import TRAN, Invocation, Node, ObjectName, Replica

NODE = Node("n1")
ROOT = Invocation("c", (1,))
CALL = Invocation("c", (1, 1))


@pytest.fixture
def com():
    objects = [Placement(name, Relation([("put", "put")]), [NODE], durable=True) for name in "ab"]
    return Com(NODE, Directory(View(1, (NODE,)), [*objects, tran([NODE], durable=True)]))


def put(name):
    footprint = Footprint("put", (("k", WRITE),))
    return (Outgoing(ObjectName(name), footprint, b"", (Replica(f"{name}@{NODE}"),)),)


def called(com):
    """A client has called a, which has called b: both instances."""
    [root] = of(Deliver, com.step(Submit("c", 1, "sync", "ucast", put("a"), CREC), 0.0))
    [part] = of(Deliver, com.step(Submit(root.sid, 1, "sync", "ucast", put("b"), CREC), 0.0))
    return root.sid, part.sid


def of(kind, effects):
    return [e for e in effects if isinstance(e, kind)]


def ended(sid, ok=True):
    return Completed(sid, ok, b"out", True, safe=False)


def test_each_word_waits_for_the_disk(com):
    root, part = called(com)
    assert not of(Received, com.step(ended(part), 0.0)), "a part answers when it is on disk"
    assert of(Received, com.step(Safe((part,)), 0.0))
    assert not of(Decided, com.step(ended(root), 0.0)), "a root decides when it is on disk"
    effects = com.step(Safe((root,)), 0.0)
    [outcome] = of(Decided, effects)
    assert outcome.replica == f"{TRAN}@{NODE}" and outcome.body == b"commit"
    assert [(e.sid, e.commit) for e in of(Settle, effects)] == [(part, True), (root, True)]
    assert not of(Received, effects), "its caller is told when the outcome is on disk"
    [answer] = of(Received, com.step(Safe((outcome.sid,)), 0.0))
    assert [r.status for r in answer.responses] == ["ok"]


def test_a_root_that_fails_decides_at_once(com):
    root, part = called(com)
    com.step(ended(part), 0.0)
    com.step(Safe((part,)), 0.0)
    effects = com.step(ended(root, ok=False), 0.0)
    assert [e.body for e in of(Decided, effects)] == [b"abort "]
    assert [(e.sid, e.commit) for e in of(Settle, effects)] == [(part, False)]


def test_a_root_that_others_decided_on_waits_for_both_records(com):
    """Another replica of it was quicker: its own record may come to the disk after that of the outcome."""
    root, part = called(com)
    com.step(ended(part), 0.0)
    com.step(Safe((part,)), 0.0)
    com.step(ended(root), 0.0)
    com.trans.deciding.send(com.instances[root], ROOT, "commit", "")
    [outcome] = of(Decided, com.step(Tick(), 0.0))
    assert not of(Received, com.step(Safe((outcome.sid,)), 0.0))
    assert of(Received, com.step(Safe((root,)), 0.0))


def test_what_nobody_decided_is_aborted_by_asking(com):
    at = Replica(f"b@{NODE}")
    com.step(Doubt(at, ((CALL, ROOT),), decide=True), 0.0)
    effects = [*com.step(Tick(), 1.0), *com.step(Tick(), 2.0)]
    assert of(Resolved, effects) == [Resolved(at, ())]
    assert not com.trans.outcomes[ROOT].commit


def test_what_was_committed_is_kept_and_a_part_that_was_undone_is_not(com):
    at, undone = Replica(f"b@{NODE}"), Invocation("c", (1, 2))
    for name, word in ((undone, "abort"), (ROOT, "commit")):
        caller = next(iter(com.calls.callers.values()), None) or _session(com)
        com.trans.deciding.send(caller, name, word, "")
        com.step(Tick(), 0.0)
    com.step(Doubt(at, ((CALL, ROOT), (undone, ROOT)), decide=True), 1.0)
    assert of(Resolved, com.step(Tick(), 2.0)) == [Resolved(at, (CALL,))]


def test_who_does_not_decide_waits_for_who_does(com):
    at = Replica(f"b@{NODE}")
    com.step(Doubt(at, ((CALL, ROOT),), decide=False), 0.0)
    assert not of(Resolved, com.step(Tick(), 1.0)) and ROOT not in com.trans.outcomes
    com.trans.abort(ROOT, "enough")
    com.step(Tick(), 2.0)
    assert of(Resolved, com.step(Tick(), 3.0)) == [Resolved(at, ())]


def test_no_durable_state_is_taken_before_tran_has_its_own(com):
    mine, tran_here = Replica(f"a@{NODE}"), Replica(f"{TRAN}@{NODE}")
    com.handover.unready.update({mine: (), tran_here: ()})
    assert com.handover.may_take(tran_here) and not com.handover.may_take(mine)
    del com.handover.unready[tran_here]
    assert com.handover.may_take(mine)


def test_a_tran_begins_when_every_node_is_there():
    nodes = [Node(f"n{n}") for n in (1, 2, 3)]
    for durable, begins in ((True, []), (False, [(f"{TRAN}@n1", NOBODY)])):
        directory = Directory(View(1, tuple(nodes)), [tran(nodes, durable)])
        here = [Replica(f"{TRAN}@n1"), Replica(f"{TRAN}@n2")]
        assert directory.seeds({Node("n1"): 2, Node("n2"): 2}, here, []) == begins
    every = [Replica(f"{TRAN}@{n}") for n in nodes]
    assert Directory(View(1, tuple(nodes)), [tran(nodes, True)]).seeds(dict.fromkeys(nodes, 2), every, [])


def _session(com):
    com.step(Submit("d", 1, "oneway", "ucast", put("a")), 0.0)
    return com.calls.sessions["d"]


def part(*names, clock=1):
    told = [Told(Invocation(n.client, (*n.path, 0)), "ok", b"commit", True, (), (), (), 1) for n in names]
    return msgspec.msgpack.encode(Part(clock, (), Kept(tuple(told), (), (), ())))


def test_the_tran_that_begins_knows_what_any_disk_has():
    other = Invocation("d", (4,))
    whole = merged([part(ROOT, clock=3), part(other, clock=8)])
    assert told_in(whole) == {Invocation("c", (1, 0)), Invocation("d", (4, 0))}
    assert read_part(whole).clock == 8
    assert told_in(b"") == set()


def test_what_a_neighbour_has_heard_counts():
    whole = with_commits(part(ROOT), [ROOT, CALL, CALL])
    assert [(t.invocation, t.body) for t in read_part(whole).replies.replies] == [
        (Invocation("c", (1, 0)), b"commit"),
        (Invocation("c", (1, 1, 0)), b"commit"),
    ]
    assert with_commits(part(ROOT), [ROOT]) == part(ROOT)
    assert told_in(with_commits(b"", [ROOT])) == {Invocation("c", (1, 0))}
