"""P1 §2.4-2.5 and P0 §5: dependent and independent instantiation, atomic computation, commit and abort (P3 §2.2)."""

import pytest

from framework.com.events import Begin, Decide, Received
from framework.com.receipt import CREC, SREC
from framework.com.telling import Ended, Prepared
from framework.errors import BadRequest
from framework.ids import Invocation

from .stage import Stage

NAME = Invocation("T", (9,))


def travel() -> Stage:
    """An agency on n1 that books a car on n2 and a hotel on n2 and n3."""
    s = Stage("n1 n2 n3")
    s.object("agency", "n1", "trip/trip")
    s.object("car", "n2", "book/book book/look", reads="look")
    s.object("hotel", "n2 n3", "book/book book/look", reads="look")
    s.transactions()
    return s


def ended(s: Stage) -> dict[str, list[bool]]:
    """By name: how it ended, at each replica."""
    out: dict[str, list[bool]] = {}
    for _, e in s.heard:
        if isinstance(e, Ended) and not e.replica.startswith("tran@"):
            out.setdefault(s.name(e.invocation), []).append(e.committed)
    return out


def prepared(s: Stage) -> set[str]:
    return {s.name(e.invocation) for _, e in s.heard if isinstance(e, Prepared)}


def book(s: Stage) -> None:
    """The agency has booked both, and is about to end."""
    s.client("T", "n3").sync("agency.trip", SREC, "trip")
    agency = s.instance("trip", "agency@n1")
    agency.sync("car.book", SREC, "car")
    s.instance("car", "car@n2").commit()
    agency.sync("hotel.book", CREC, "hotel")
    s.instance("hotel", "hotel@n2").commit()
    s.instance("hotel", "hotel@n3").commit()


def test_a_method_commits_what_it_invoked_when_it_commits() -> None:
    """P1 §2.4: an instance that was invoked dependently commits only if the one that invoked it does."""
    s = travel()
    book(s)
    assert prepared(s) == {"car", "hotel"}
    assert ended(s) == {}
    s.instance("trip", "agency@n1").commit()
    assert ended(s) == {"trip": [True], "car": [True], "hotel": [True, True]}
    assert s.finish().violations == []


def test_if_it_aborts_so_does_all_that_it_invoked() -> None:
    s = travel()
    book(s)
    s.instance("trip", "agency@n1").abort()
    assert ended(s) == {"trip": [False], "car": [False], "hotel": [False, False]}
    assert all(ledger.performed == 0 for at, ledger in s.ledgers.items() if not at.startswith("tran@"))
    assert s.finish().violations == []


def test_others_wait_until_it_is_over() -> None:
    """P0 §5: what conflicts with an instance that has not committed is not performed."""
    s = travel()
    book(s)
    other = s.client("U", "n2")
    other.oneway("hotel.book", "next")
    assert s.delivered("hotel@n3") == ["hotel"]
    s.instance("trip", "agency@n1").commit()
    assert s.delivered("hotel@n3") == ["hotel", "next"]
    assert s.finish().violations == []


def test_a_further_call_of_the_same_transaction_does_not_wait() -> None:
    """Nor for those that wait for it."""
    s = travel()
    book(s)
    s.client("U", "n2").oneway("hotel.book", "next")
    s.instance("trip", "agency@n1").sync("hotel.book", CREC, "more")
    assert s.delivered("hotel@n3") == ["hotel", "more"]
    assert s.finish().violations == []


def test_a_callee_that_fails_is_undone_alone_with_what_it_invoked() -> None:
    s = travel()
    s.client("T", "n3").sync("agency.trip", SREC, "trip")
    agency = s.instance("trip", "agency@n1")
    agency.sync("car.book", SREC, "car")
    car = s.instance("car", "car@n2")
    car.sync("hotel.book", CREC, "inner")
    s.instance("inner", "hotel@n2").commit()
    s.instance("inner", "hotel@n3").commit()
    car.abort()
    agency.sync("hotel.book", CREC, "hotel")
    s.instance("hotel", "hotel@n2").commit()
    s.instance("hotel", "hotel@n3").commit()
    agency.commit()
    assert ended(s) == {"trip": [True], "car": [False], "inner": [False, False], "hotel": [True, True]}
    assert s.finish().violations == []


def test_what_was_invoked_independently_stays() -> None:
    """P1 §2.4: independent instantiation; here one-way."""
    s = travel()
    s.client("T", "n3").sync("agency.trip", SREC, "trip")
    agency = s.instance("trip", "agency@n1")
    agency.sync("car.book", SREC, "car")
    s.instance("car", "car@n2").commit()
    agency.send("hotel.book", "letter", "oneway", independent=True)
    agency.abort()
    s.instance("letter", "hotel@n2").commit()
    s.instance("letter", "hotel@n3").commit()
    assert ended(s) == {"trip": [False], "car": [False], "letter": [True, True]}
    assert s.finish().violations == []


def test_the_first_outcome_counts_whoever_sends_another() -> None:
    """P3 §2.2: commit and abort are messages; here they are ordered as others are."""
    s = travel()
    t = s.client("T", "n1")
    s.do("n1", Begin("T", 9, 1000.0))
    sent = t.event("car.book", "sync", SREC, tran=9)
    s.submit(t.node, sent, ["car"])
    s.instance("car", "car@n2").commit()
    s.hold("n1->n2", "n1->n3")
    s.do("n1", Decide("T", 50, 9, True))
    s.com("n3").trans.abort(NAME, "somebody else")
    s.tick(1.0)
    s.release()
    s.tick(20.0)
    (committed,) = set(ended(s)["car"])
    first = {str(c.trans.outcomes[NAME].commit) for c in (s.com(n) for n in ("n1", "n2", "n3"))}
    assert first == {str(committed)}
    assert s.finish().violations == []


def messages(transactions: bool) -> dict[str, int]:
    s = Stage("n1 n2 n3")
    s.object("bank", "n1 n2 n3", "deposit/deposit deposit/balance", reads="balance", at_once=True)
    s.object("single", "n2", "put/put", at_once=True)
    if transactions:
        s.transactions()
    count: dict[str, int] = {}

    def watch(what: str, node: object, detail: object) -> None:
        count[what] = count.get(what, 0) + 1
        kind = f"{what} {type(detail).__name__}"
        count[kind] = count.get(kind, 0) + 1

    s.watch = watch
    ann = s.client("ann", "n1")
    for n in range(5):
        ann.sync("bank.deposit(k)", CREC, f"d{n}")
        ann.sync("single.put", SREC, f"p{n}")
        ann.sync("bank.balance(k)@n1", SREC, f"b{n}")
    assert s.finish().violations == []
    return count


def test_a_call_that_invokes_nobody_costs_nothing_more() -> None:
    """The same messages, frames and effects with transactions as without."""
    assert messages(True) == messages(False)


def test_only_the_node_where_it_began_commits() -> None:
    """Another one does not know whether all have answered: unknown means abort. And who asks again is told the same."""
    s = travel()
    s.do("n1", Begin("T", 9, 1000.0))
    t = s.client("T", "n1")
    s.submit(t.node, t.event("car.book", "sync", SREC, tran=9), ["car"])
    s.instance("car", "car@n2").commit()
    for call in (50, 51):
        s.do("n3", Decide("T", call, 9, True))
        answer = next(e for _, e in s.heard if isinstance(e, Received) and e.call == call)
        assert [r.body for r in answer.responses] == [b"abort the node where it began was lost"]
    assert ended(s) == {"car": [False]}
    assert s.finish().violations == []


# distributed control: each participant tells all others (P1 §2.4)


def both(s: Stage, *names: str) -> None:
    """A client's transaction that is one pcast, decided on by its parts."""
    s.do("n1", Begin("T", 9, 1000.0))
    t = s.client("T", "n1")
    s.submit(t.node, t.event("car.book hotel.book", "sync", CREC, tran=9, votes=True), list(names))


def outcomes(s: Stage) -> list[bool | None]:
    found = (s.com(n).trans.outcomes.get(NAME) for n in ("n1", "n2", "n3"))
    return [None if o is None else o.commit for o in found]


def test_when_all_parts_have_ended_well_it_is_committed_without_its_root() -> None:
    """The node of the client says nothing any more once the requests have left."""
    s = travel()
    both(s, "car", "hotel")
    s.hold("n1->n2", "n1->n3")
    s.instance("car", "car@n2").commit()
    s.instance("hotel", "hotel@n2").commit()
    assert ended(s) == {}
    s.instance("hotel", "hotel@n3").commit()
    s.release()
    assert outcomes(s) == [True, True, True]
    assert ended(s) == {"car": [True], "hotel": [True, True]}
    s.do("n1", Decide("T", 50, 9, True))
    answer = next(e for _, e in s.heard if isinstance(e, Received) and e.call == 50)
    assert [r.body for r in answer.responses] == [b"commit"]
    assert s.finish().violations == []


def test_a_part_that_fails_aborts_all() -> None:
    s = travel()
    both(s, "car", "hotel")
    s.instance("car", "car@n2").commit()
    s.instance("hotel", "hotel@n2").abort()
    s.instance("hotel", "hotel@n3").abort()
    assert outcomes(s) == [False, False, False]
    assert ended(s) == {"car": [False], "hotel": [False, False]}
    assert s.finish().violations == []


def test_an_abort_before_the_last_vote_counts_everywhere() -> None:
    """Votes and an abort that cross: one order at all replicas of tran."""
    for first in ("vote", "abort"):
        s = travel()
        both(s, "car", "hotel")
        s.instance("car", "car@n2").commit()
        s.instance("hotel", "hotel@n2").commit()
        s.hold("n3->n1", "n1->n3")
        if first == "vote":
            s.instance("hotel", "hotel@n3").commit()
        s.com("n1").trans.abort(NAME, "somebody else")
        s.tick(1.0)
        if first == "abort":
            s.instance("hotel", "hotel@n3").commit()
        s.release()
        s.tick(20.0)
        (commit,) = set(outcomes(s))
        assert set(ended(s)["hotel"]) == set(ended(s)["car"]) == {commit}
        assert s.finish().violations == []


def test_who_asks_after_the_last_vote_is_told_that_it_is_committed() -> None:
    s = travel()
    both(s, "car", "hotel")
    s.instance("car", "car@n2").commit()
    s.instance("hotel", "hotel@n2").commit()
    s.instance("hotel", "hotel@n3").commit()
    s.client("T", "n3")
    s.do("n3", Decide("T", 50, 9, False))
    answer = next(e for _, e in s.heard if isinstance(e, Received) and e.call == 50)
    assert [r.body for r in answer.responses] == [b"commit"]
    assert outcomes(s) == [True, True, True]
    assert s.finish().violations == []


def test_nothing_else_belongs_to_what_its_parts_decide_on() -> None:
    s = travel()
    both(s, "car", "hotel")
    t = s.client("T", "n1")
    with pytest.raises(BadRequest, match="T/9 is decided by its parts"):
        s.do("n1", t.event("car.look", "sync", SREC, tran=9))
    with pytest.raises(BadRequest, match="whole of a client's transaction"):
        s.do("n1", t.event("car.look", "sync", SREC, votes=True))
