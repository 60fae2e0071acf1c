"""From facts to a text: what is a deadlock, and what only looks like one."""

from framework.ids import GroupId, Invocation, Replica
from framework.orb import chain
from framework.orb.facts import Fact, Spot


def spot(at, number, place=False):
    return Spot(Replica(at), GroupId(number, Replica("tran@n1"), 0), Invocation("c", (number,)), place)


def known(*facts):
    return {fact.spot.key: fact for fact in facts}


def waits(at, number, *for_, need=1):
    return Fact(spot(at, number), "a.m", "waits for {}", tuple(spot(*f) for f in for_), need)


def runs(at, number):
    return Fact(spot(at, number), "a.m", "is being performed since 1.0 s", free=True)


def test_a_cycle_is_told_with_the_way_into_it():
    facts = known(waits("a@n1", 1, ("b@n1", 2)), waits("b@n1", 2, ("c@n1", 3)), waits("c@n1", 3, ("b@n1", 2)))
    assert chain.told([spot("a@n1", 1)], facts) == (
        "a.m of c/1 at a@n1 waits for a.m of c/2; a.m of c/2 at b@n1 waits for a.m of c/3; "
        "a.m of c/3 at c@n1 waits for a.m of c/2: a deadlock"
    )


def test_a_cycle_that_another_replica_will_break_is_no_deadlock():
    """One answer of two is enough, and the second replica is only slow."""
    back = waits("b@n1", 2, ("a@n1", 1))
    some = known(waits("a@n1", 1, ("b@n1", 2), ("b@n2", 2)), back, runs("b@n2", 2))
    both = known(waits("a@n1", 1, ("b@n1", 2), ("b@n2", 2), need=2), back, runs("b@n2", 2))
    assert "deadlock" not in chain.told([spot("a@n1", 1)], some)
    assert chain.told([spot("a@n1", 1)], both).endswith(": a deadlock")


def test_of_whom_nothing_is_known_may_go_on():
    facts = known(waits("a@n1", 1, ("b@n1", 2), ("b@n2", 2)), waits("b@n1", 2, ("a@n1", 1)))
    assert (
        chain.told([spot("a@n1", 1)], facts)
        == "a.m of c/1 at a@n1 waits for a.m of c/2, b of c/2; a.m of c/2 at b@n1 waits for a.m of c/1"
    )


def test_an_unreachable_node_breaks_no_deadlock():
    gone = Fact(spot("b@n2", 2), "b", "waits for n2, which cannot be reached")
    facts = known(waits("a@n1", 1, ("b@n1", 2), ("b@n2", 2)), waits("b@n1", 2, ("a@n1", 1)), gone)
    assert chain.told([spot("a@n1", 1)], facts).endswith(": a deadlock")
    alone = known(waits("a@n1", 1, ("b@n2", 2)), gone)
    text = chain.told([spot("a@n1", 1)], alone)
    assert text.endswith("b of c/2 at b@n2 waits for n2, which cannot be reached")


def test_what_is_the_same_at_several_replicas_is_told_once():
    facts = known(runs("a@n1", 1), runs("a@n2", 1))
    roots = [spot("a@n1", 1), spot("a@n2", 1)]
    assert chain.told(roots, facts) == "a.m of c/1 at a@n1, a@n2 is being performed since 1.0 s"


def test_a_long_text_is_cut():
    facts = known(*(waits("a@n1", n, ("a@n1", n + 1)) for n in range(40)), runs("a@n1", 40))
    text = chain.told([spot("a@n1", 0)], facts)
    assert text.count("; ") == chain.LONGEST
    assert text.endswith("; and 25 more")


def test_nothing_is_known():
    assert chain.told([spot("a@n1", 1)], {}) == ""
