"""P1 §3: how instances precede each other, Figures 3 to 5, read off the traces of runs.

The relations are written here from their definitions and know nothing of the protocol: an instance is an interval of
records of its node, with an instantiation for each call it makes: from sending the request to receiving the response.
"""

from collections.abc import Callable
from itertools import permutations

import pytest

from framework.com.receipt import SREC
from framework.footprint import Footprint, Relation
from framework.sim.run import Options, run
from framework.trace.files import Trace
from tests.paper.stage import Stage

SetUp = Callable[[str], Stage]


class Span:
    """An instance: when it began and ended on its node, and what it instantiated, when, until when."""

    def __init__(self, replica: str, invocation: str, footprint: Footprint, begin: int) -> None:
        self.replica = replica
        self.invocation = invocation
        self.footprint = footprint
        self.begin = begin
        self.end = 0
        self.calls: dict[str, tuple[int, int | None]] = {}  # invocation: (sent, received)


def spans(trace: Trace) -> list[Span]:
    found: dict[str, Span] = {}
    groups: dict[str, str] = {}
    for r in trace.records:
        if r.event == "deliver":
            assert r.footprint is not None
            found[r.sid] = Span(r.replica, r.invocation, r.footprint, r.i)
        elif r.event == "end":
            found[r.sid].end = r.i
        elif r.event == "send" and r.sid in found:
            groups[r.group] = r.invocation
            found[r.sid].calls[r.invocation] = (r.i, None)
        elif r.event == "receive" and r.sid in found:
            sent, _ = found[r.sid].calls[groups[r.group]]
            found[r.sid].calls[groups[r.group]] = (sent, r.i)
    return list(found.values())


def fully(one: Span, two: Span) -> bool:
    """(1) one ⇒ two: one] → [two."""
    return one.replica == two.replica and one.end < two.begin


def top(one: Span, two: Span) -> bool:
    """(2) [one → [two."""
    return one.begin < two.begin


def tail(one: Span, two: Span) -> bool:
    """(3) one] → two]."""
    return one.end < two.end


def dependently(one: Span, invocation: str) -> bool:
    """(4) [one → (two) → one]: the call begins and is completed inside."""
    sent, received = one.calls.get(invocation, (0, None))
    return received is not None and one.begin < sent < received < one.end


def independently(one: Span, invocation: str) -> bool:
    """(5) [one → (two → one]: the call begins inside, and nothing is said about its end."""
    sent, received = one.calls.get(invocation, (0, None))
    return one.begin < sent < one.end and received is None


def interleaved(one: Span, two: Span) -> bool:
    return one.begin < two.begin < one.end


def included(one: Span, two: Span) -> bool:
    """two in one: one top-precedes two, and two tail-precedes one."""
    return top(one, two) and tail(two, one)


def played(stage: Stage, node: str) -> dict[str, Span]:
    """The instances on a node, by the names of their messages."""
    stage.settle()
    (trace,) = [t for t in stage.traces() if t.header.node == node]
    named = {
        str(i.effect.request.invocation): stage.name(i.effect.request.invocation) for i in stage.instances.values()
    }
    return {named[s.invocation]: s for s in spans(trace)}


def two_requests(set_up: SetUp, *methods: str) -> Stage:
    stage = set_up("c e k")
    stage.object("o", "k", "w/w")
    for n, method in enumerate(methods, 1):
        stage.client(f"T{n}", "ce"[n % 2]).oneway(f"o.{method}", f"op{n}")
    return stage


def test_figure_3_1_conflicting_instances_precede_fully(set_up: SetUp) -> None:
    """P1 Fig. 3(1): op1 ⇒ op2; op2 arrived while op1 was performed, but they conflict."""
    stage = two_requests(set_up, "w", "w")
    stage.instance("op1", "o@k").commit()
    op = played(stage, "k")
    assert fully(op["op1"], op["op2"]) and not fully(op["op2"], op["op1"])
    assert not interleaved(op["op1"], op["op2"])
    assert top(op["op1"], op["op2"]) and tail(op["op1"], op["op2"])


def test_figure_3_2_and_3_compatible_instances_interleave(set_up: SetUp) -> None:
    """P1 Fig. 3(2), 3(3): op1 top-precedes op2 and tail-precedes it; they overlap."""
    stage = two_requests(set_up, "w", "p")
    stage.instance("op1", "o@k").commit()
    op = played(stage, "k")
    assert top(op["op1"], op["op2"]) and tail(op["op1"], op["op2"]) and interleaved(op["op1"], op["op2"])
    assert not fully(op["op1"], op["op2"]) and not included(op["op1"], op["op2"])


def test_figure_3_included(set_up: SetUp) -> None:
    """P1 §3: op1 top-precedes op2 and op2 tail-precedes op1: op2 is included in op1."""
    stage = two_requests(set_up, "w", "p")
    stage.instance("op2", "o@k").commit()
    op = played(stage, "k")
    assert included(op["op1"], op["op2"])


def calling(set_up: SetUp) -> Stage:
    stage = set_up("c i j")
    stage.object("o", "i", "w/w")
    stage.object("b", "j")
    stage.client("T", "c").oneway("o.w", "op1")
    return stage


def test_figure_3_4_synchronous_calls_are_dependent_instantiations(set_up: SetUp) -> None:
    """P1 §2.4, Fig. 3(4): blocked instantiation: [op1 → (op2) → op1]."""
    stage = calling(set_up)
    op1 = stage.instance("op1", "o@i")
    sent = op1.sync("b.p", SREC, "op2")
    stage.instance("op2", "b@j").commit()
    op1.commit()
    op = played(stage, "i")
    assert dependently(op["op1"], str(sent.invocation)) and not independently(op["op1"], str(sent.invocation))


def test_figure_3_4_asynchronous_calls_hold_the_end_back(set_up: SetUp) -> None:
    """P1 §2.4: non-blocked instantiation: op1 goes on while op2 is computed, but completes after op2 does."""
    stage = calling(set_up)
    op1 = stage.instance("op1", "o@i")
    op1.later("b.p", "op2")
    op1.commit()
    stage.client("T2", "c").oneway("o.w", "op3")
    assert stage.delivered("o@i") == ["op1"]  # not ended: what conflicts with it waits
    stage.instance("op2", "b@j").commit()
    assert stage.delivered("o@i") == ["op1", "op3"]
    op = played(stage, "i")
    assert fully(op["op1"], op["op3"])


def test_figure_3_5_one_way_calls_are_independent_instantiations(set_up: SetUp) -> None:
    """P1 §2.4, Fig. 3(5): op1 may complete before op2 does: [op1 → (op2 → op1]."""
    stage = calling(set_up)
    op1 = stage.instance("op1", "o@i")
    sent = op1.oneway("b.p", "op2")
    op1.commit()
    stage.client("T2", "c").oneway("o.w", "op3")
    assert stage.delivered("o@i") == ["op1", "op3"]  # op1 has ended, op2 has not
    op = played(stage, "i")
    assert independently(op["op1"], str(sent.invocation)) and not dependently(op["op1"], str(sent.invocation))


def check_conflicting(trace: Trace, every: list[Span]) -> int:
    """How many conflicting pairs, none instantiated by the other? They all precede each other fully."""
    relations = {name: Relation(placed.conflicts) for name, placed in trace.header.objects.items()}
    count = 0
    for one, two in permutations(every, 2):
        if one.replica != two.replica or two.invocation.startswith(one.invocation + "."):
            continue
        if relations[one.replica.partition("@")[0]].conflict(one.footprint, two.footprint) and top(one, two):
            assert fully(one, two), (one.invocation, two.invocation)
            count += 1
    return count


def check_calls(trace: Trace, every: list[Span]) -> int:
    """How many synchronous calls? They all are dependent instantiations."""
    sync = {r.invocation for r in trace.records if r.event == "send" and r.kind == "sync"}
    calls = [(one, call) for one in every for call in one.calls if call in sync]
    for one, call in calls:
        assert dependently(one, call), (one.invocation, call)
    return len(calls)


def test_figure_3_in_random_runs() -> None:
    """P1 §2.2, Fig. 3: on every replica of random runs, conflicting instances precede each other fully, but for those
    that one of them instantiated; and who waits for a call, and does not give it up, instantiates it dependently."""
    patient = Options(shape={"cancel": 0.0})
    traces = [trace for seed in range(6) for trace in run(seed, patient).traces]
    assert sum(check_conflicting(trace, spans(trace)) for trace in traces) > 100
    assert sum(check_calls(trace, spans(trace)) for trace in traces) > 20


# Figures 4 and 5: over several objects

Edges = set[tuple[str, str]]


def close(edges: Edges) -> Edges:
    """Transitive."""
    while True:
        more = {(a, d) for a, b in edges for c, d in edges if b == c} - edges
        if not more:
            return edges
        edges = edges | more


def precedence(stage: Stage, nodes: str) -> tuple[Edges, Edges]:
    """⇒ and ≺ on the instances of a run, by the names of their messages.

    op1 ⇒ op2 iff op1 precedes op2 fully at one object, or op1 ended before op2 was instantiated there; and transitive.
    op1 ≺ op2 iff moreover op1 and op2 conflict, or op1 ≺ op3 and op3 instantiates op2; and transitive."""
    full: Edges = set()
    significant: Edges = set()
    stage.settle()
    names = {
        str(i.effect.request.invocation): stage.name(i.effect.request.invocation) for i in stage.instances.values()
    }
    for node in nodes.split():
        here = list(played(stage, node).items())
        instantiated = {(a, names[call]) for a, one in here for call in one.calls}
        for (a, one), (b, two) in permutations(here, 2):
            if fully(one, two):
                full.add((a, b))
                relation = stage.placements[one.replica.partition("@")[0]].relation
                if relation.conflict(one.footprint, two.footprint):
                    significant.add((a, b))
            for call, (sent, _) in two.calls.items():
                if one.replica == two.replica and one.end < sent:
                    full.add((a, names[call]))
        significant |= {(a, d) for a, b in significant for c, d in instantiated if b == c}
    return close(full), close(significant)


@pytest.mark.parametrize("method", ["w", "p"], ids=["conflict", "compatible"])
def test_figures_4_and_5_full_and_significant_precedency(set_up: SetUp, method: str) -> None:
    """P1 Figs. 4 and 5: at o_i op1 ends, then op3 begins and instantiates op2 at o_j: op1 ⇒ op3, op1 ⇒ op2. Only if
    op1 and op3 conflict, op1 ≺ op3 and op1 ≺ op2. That is what the messages that start them say: m1 → m2 just then."""
    stage = set_up("c e i j")
    stage.object("o", "i", "w/w")
    stage.object("b", "j")
    stage.client("T1", "c").oneway("o.w", "op1")
    stage.instance("op1", "o@i").commit()
    stage.client("T3", "e").oneway(f"o.{method}", "op3")
    stage.instance("op3", "o@i").oneway("b.p", "op2")
    full, significant = precedence(stage, "i j")
    assert full == {("op1", "op3"), ("op1", "op2")}
    assert significant == (full if method == "w" else set())
    assert stage.precedes("op1", "op2") == (("op1", "op2") in significant)


def test_figure_5_3_significant_precedency_is_transitive(set_up: SetUp) -> None:
    """P1 §3, definition of ≺, (3): over two objects. op1 ≺ op3 at i, op3 instantiates op2 at j, op2 ≺ op4 at j."""
    stage = set_up("c e i j")
    stage.object("o", "i", "w/w")
    stage.object("b", "j", "w/w")
    stage.client("T1", "c").oneway("o.w", "op1")
    stage.instance("op1", "o@i").commit()
    stage.client("T3", "e").oneway("o.w", "op3")
    stage.instance("op3", "o@i").oneway("b.w", "op2")
    stage.instance("op2", "b@j").commit()
    stage.client("T4", "e").oneway("b.w", "op4")
    _, significant = precedence(stage, "i j")
    assert ("op1", "op4") in significant and ("op4", "op1") not in significant
