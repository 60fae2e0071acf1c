"""A run small enough to be worked out by hand: two nodes, one account object, three calls."""

from framework.footprint import Footprint
from framework.trace.files import Trace
from framework.trace.record import Header, Placed, Record

OBJECTS = {
    "bank": Placed(("bank@n1", "bank@n2"), (("balance", "deposit"), ("deposit", "deposit"))),
    "log": Placed(("log@n1", "log@n2"), ()),
}
DEPOSIT = Footprint("deposit", (("ann", "w"),))
OTHER = Footprint("deposit", (("bob", "w"),))
BALANCE = Footprint("balance", (("ann", "r"),), True)


class Node:
    """Writes the records of one node."""

    def __init__(self, name: str, skew: float = 0.0) -> None:
        self.name, self.skew = name, skew
        self.records: list[Record] = []

    def add(self, at: float, event: str, **fields: object) -> None:
        one = Record(i=len(self.records) + 1, node=self.name, at=at + self.skew, event=event, view=1, **fields)
        self.records.append(one)

    def send(
        self, at, sid, no, invocation, footprint, dests=("bank@n1", "bank@n2"), receipt="crec", client="ann", **more
    ):
        self.add(
            at, "send", sid=sid, no=no, group=f"{sid}:{no}", cid=sid, invocation=invocation, client=client,
            kind=more.pop("kind", "sync"), transmission=more.pop("transmission", "mcast"), receipt=receipt,
            parts=((dests[0].partition("@")[0], footprint),), dests=tuple((d, 1) for d in dests), **more,
        )  # fmt: skip

    def serve(self, group, invocation, sid, footprint, arrive, propose, agree, start, end, way="fast", ok=True):
        """A request from its arrival to its end, at the bank of this node. The end may be written later: end=None."""
        place = f"bank@{self.name}"
        at = {"arrive": arrive, "propose": propose, "agree": agree}
        for event, when in at.items():
            if when is not None:
                self.add(when, event, replica=place, group=group, invocation=invocation if event == "arrive" else "",
                         way=way if event == "agree" else "")  # fmt: skip
        self.add(
            start,
            "deliver",
            replica=place,
            group=group,
            invocation=invocation,
            sid=sid,
            cid=sid,
            footprint=footprint,
            way=way,
        )
        if end is not None:
            self.end(end, sid, invocation, ok)

    def end(self, at, sid, invocation, ok=True):
        self.add(at, "end", replica=f"bank@{self.name}", sid=sid, invocation=invocation, committed=ok)

    def receive(self, at, group, received, client="ann", receipt="crec"):
        self.add(
            at, "receive", group=group, sid=group.rpartition(":")[0], client=client, receipt=receipt, received=received
        )

    def stop(self, at):
        self.add(at, "stop")

    def trace(self) -> Trace:
        return Trace(Header(node=self.name, view=1, members=("n1", "n2"), objects=OBJECTS), self.records)


def three_calls(skew: float = 0.0) -> list[Trace]:
    """ann deposits twice on one key, overlapping in time; bob's deposit on another key waits for nothing. ``skew``: how
    far the clock of n2 is ahead."""
    n1, n2 = Node("n1"), Node("n2", skew)
    a, b, c = "1:tran@n1", "2:tran@n1", "3:tran@n2"
    n1.send(10.0, a, 0, "ann/1", DEPOSIT)
    n1.serve(f"{a}:0", "ann/1", "5:bank@n1", DEPOSIT, 10.0, 10.0, 12.0, 12.0, None)
    n1.send(10.5, b, 0, "bob/1", DEPOSIT, client="bob")
    n1.add(10.5, "arrive", replica="bank@n1", group=f"{b}:0", invocation="bob/1")
    n1.add(10.6, "propose", replica="bank@n1", group=f"{b}:0")
    n1.add(12.5, "agree", replica="bank@n1", group=f"{b}:0", way="slow")
    n1.end(13.0, "5:bank@n1", "ann/1")
    n1.serve(f"{b}:0", "bob/1", "6:bank@n1", DEPOSIT, None, None, None, 13.0, 14.0, "slow")
    n2.send(10.0, c, 0, "cem/1", OTHER, client="cem", receipt="srec", dests=("bank@n2",), transmission="ucast")
    n2.serve(f"{c}:0", "cem/1", "9:bank@n2", OTHER, 10.0, 10.0, 10.0, 10.0, 10.5, "none")
    n2.receive(10.5, f"{c}:0", (("bank@n2", "ok"),), "cem", "srec")
    n2.serve(f"{a}:0", "ann/1", "10:bank@n2", DEPOSIT, 11.0, 11.5, 12.0, 12.0, None)
    n2.add(12.1, "arrive", replica="bank@n2", group=f"{b}:0", invocation="bob/1")
    n2.add(12.2, "propose", replica="bank@n2", group=f"{b}:0")
    n2.add(12.8, "agree", replica="bank@n2", group=f"{b}:0", way="slow")
    n2.end(13.5, "10:bank@n2", "ann/1")
    n2.serve(f"{b}:0", "bob/1", "11:bank@n2", DEPOSIT, None, None, None, 13.5, 15.0, "slow")
    n1.receive(14.5, f"{a}:0", (("bank@n1", "ok"), ("bank@n2", "ok")))
    n1.receive(16.0, f"{b}:0", (("bank@n1", "ok"), ("bank@n2", "ok")), "bob")
    n1.stop(20.0)
    n2.stop(20.0)
    return [n1.trace(), n2.trace()]
