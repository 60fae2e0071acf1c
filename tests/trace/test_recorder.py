"""What of the effects of the com layer becomes a record."""

from framework.com.events import Received
from framework.com.receipt import DREC
from framework.ids import GroupId, Node, Replica, Sid
from framework.trace.record import Record
from framework.trace.recorder import Recorder

SID = Sid(1, Replica("tran@n1"))


def test_a_receipt_of_what_never_left_its_node_is_no_record() -> None:
    """No message belongs to it, so readers of the trace could not say what it received."""
    records: list[Record] = []
    recorder = Recorder(Node("n1"), 1, records.append)
    recorder.effect(Received(SID, "ann", 1, None, DREC, (), True), 1.0)
    assert records == []
    recorder.effect(Received(SID, "ann", 2, GroupId(1, SID.replica, 0), DREC, (), True), 2.0)
    assert [(r.i, r.event, r.group) for r in records] == [(1, "receive", "1:tran@n1:0")]
