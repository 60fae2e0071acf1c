"""Words from peers whose contents cannot be: a decision that is no view after this one, a ballot out of range."""

from typing import Any

import pytest

from framework.com.events import Arrived
from framework.com.messages import encode
from framework.com.view import View
from framework.com.words import Ballot, Decided, Decision, Prepare, Refuse, Report
from framework.errors import BadMessage
from framework.ids import GroupId, Node, Replica
from tests.com.council import N1, N2, N3, N4, N5, Council
from tests.com.fingerprint import fingerprint
from tests.com.trio import to, write


def view(*members: Node, since: tuple[int, ...] = ()) -> View:
    return View(2, members, since or (1,) * len(members), (1,) * len(members))


FOUR = view(N1, N2, N3, N4)
X9 = Node("x9")
OF_N5 = {"group": GroupId(5, Replica("tran@n5"), 1), "target": "f@n1", "dests": to("f@n1", "f@n2")}


def brings(**change: Any) -> Decided:
    return Decided(N2, Decision(FOUR, (N5,), (), Report((), (write(1, **{**OF_N5, **change}),))))


IMPOSSIBLE = {
    "lives of too few": Decided(N2, Decision(view(N1, N2, N3, since=(1,)), (N4, N5))),
    "a member that is no node": Decided(N2, Decision(view(N1, N2, N3, X9), (N4, N5), (X9,))),
    "one leaves and stays": Decided(N2, Decision(FOUR, (N3, N5))),
    "one leaves unsaid": Decided(N2, Decision(FOUR)),
    "one joins and is not there": Decided(N2, Decision(FOUR, (N5,), (X9,))),
    "no majority of the view before": Decided(N2, Decision(view(N1, N2), (N3, N4, N5))),
    "a stamp out of range": brings(number=1 << 60),
    "a request without parts": brings(parts=()),
    "a request to nobody": brings(target="q@n1", dests=to("q@n1")),
    "a request of one who stays": brings(group=GroupId(5, Replica("tran@n3"), 1)),
    "a ballot out of range": Prepare(N2, 1, 1, Ballot((1 << 64) - 1, N2), (N5,)),
    "refused for a ballot out of range": Refuse(N2, 1, 1, Ballot(1, N1), Ballot((1 << 64) - 1, N2)),
    "a ballot of somebody else": Prepare(N2, 1, 1, Ballot(1, N3), (N5,)),
    "without one who is no node": Prepare(N2, 1, 1, Ballot(1, N2), (X9,)),
    "without a majority": Prepare(N2, 1, 1, Ballot(1, N2), (N3, N4, N5)),
}


@pytest.mark.parametrize("word", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_impossible_contents(word: Any) -> None:
    """A frame is judged whole before any of it is used. So is a word: what is installed cannot be taken back."""
    council = Council()
    before = fingerprint(council.com[N1])
    with pytest.raises(BadMessage):
        council.step(N1, Arrived(N2, encode(word)))
    assert fingerprint(council.com[N1]) == before
