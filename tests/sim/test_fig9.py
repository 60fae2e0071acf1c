"""Fig. 9 of P0: traces made by hand, where it is known which messages are ordered; then the workload and small runs."""

from collections import Counter as Count

import msgspec
import pytest

from framework.errors import BadRequest
from framework.footprint import Footprint
from framework.sim import fig9
from framework.sim.fig9_count import COUNTINGS, MAIN, Counter, Counting, Tally
from framework.sim.fig9_relation import relations
from framework.sim.fig9_workload import PAIRS, Forest, Workload, traces
from framework.sim.oracle import judge
from framework.trace.files import Trace
from framework.trace.record import Header, Placed, Record


class Story:
    """Writes a trace: who sends what to whom. A request is delivered when the story says so."""

    def __init__(self, *conflicts, **where):
        """``o1="n2"``: where each object is. Two methods that ``conflicts`` names do so on every object."""
        self.where = where
        objects = {name: Placed((f"{name}@{node}",), conflicts) for name, node in where.items()}
        nodes = sorted({"n1", *where.values()})
        self.traces = {n: Trace(Header(node=n, view=1, members=tuple(nodes), objects=objects), []) for n in nodes}
        self.sent = {}
        self.clock = 0

    def note(self, node, event, **fields):
        records = self.traces[node].records
        records.append(Record(i=len(records) + 1, node=node, at=0.0, event=event, view=1, **fields))

    def send(self, group, sender, **parts):
        """``o1="a"``: method a of o1. The sender is a transaction on n1 ("T1"), or the group whose instance it is."""
        node, sid, invocation = self._who(sender)
        calls = [g for g in self.sent if self.sent[g][1] == sid]
        first = f"{invocation}{'.' if sender in self.sent else '/'}{1 + 4 * len(calls)}"
        places = {name: f"{name}@{self.where[name]}" for name in parts}
        self.sent[group] = (node, sid, first, list(parts), {n: self.sid(group, n) for n in parts}, parts)
        self.note(
            node,
            "send",
            sid=sid,
            group=group,
            invocation=first,
            client="" if sender in self.sent else sender,
            kind="sync",
            parts=tuple((name, Footprint(m)) for name, m in parts.items()),
            dests=tuple((places[name], 1) for name in parts),
        )

    def sid(self, group, name):
        self.clock += 1
        return f"{self.clock + 10}:{name}@{self.where[name]}:{group}"

    def _who(self, sender):
        if sender not in self.sent:
            return "n1", f"1:tran@n1:{sender}", sender
        (name,) = self.sent[sender][3]
        return self.where[name], self.sent[sender][4][name], self.sent[sender][2]

    def start(self, group, *names):
        _, _, _, objects, sids, parts = self.sent[group]
        for name in names or objects:
            node = self.where[name]
            at = {"replica": f"{name}@{node}", "group": group}
            self.note(node, "arrive", **at)
            self.note(node, "deliver", sid=sids[name], footprint=Footprint(parts[name]), **at)

    def end(self, group):
        for name, sid in self.sent[group][4].items():
            self.note(self.where[name], "end", sid=sid, replica=f"{name}@{self.where[name]}")

    def receive(self, group):
        node, sid, _, objects, _, _ = self.sent[group]
        self.note(
            node, "receive", sid=sid, group=group, received=tuple((f"{n}@{self.where[n]}", "ok") for n in objects)
        )

    def call(self, group, sender, **parts):
        self.send(group, sender, **parts)
        self.start(group)
        self.end(group)
        self.receive(group)

    def relations(self):
        return relations(list(self.traces.values()))

    def tally(self, text):
        counter = Counter(self.relations())
        return counter.tally(next(how for how in COUNTINGS if str(how) == text))


def names(run, bits):
    """Requests by their group and object, responses with a prime."""
    of = {m.number: f"{g}:{r.partition('@')[0]}" for (g, r), m in run.requests.items()}
    of |= {m.number: f"{g}:{r.partition('@')[0]}'" for (g, r), m in run.responses.items()}
    return {of[i] for i in of if bits >> i & 1}


@pytest.fixture
def two():
    """T1 calls a and then b of o1; then T2 calls a. Calls of a conflict. All from n1 to n2."""
    story = Story(("a", "a"), o1="n2")
    story.call("m1", "T1", o1="a")
    story.call("m2", "T1", o1="b")
    story.call("m3", "T2", o1="a")
    return story


def test_one_thread_orders_what_it_sends_and_conflicts_are_ordered(two):
    run = two.relations()
    m2, m3 = run.requests["m2", "o1@n2"], run.requests["m3", "o1@n2"]
    assert names(run, m2.before) == {"m1:o1", "m1:o1'"}
    assert names(run, m3.before) == set()
    assert names(run, m3.conflicts) == {"m1:o1"}
    assert names(run, m3.network) == {"m1:o1", "m1:o1'", "m2:o1", "m2:o1'"}


def test_a_conflicting_thread_inherits_what_the_earlier_one_did(two):
    run = two.relations()
    third = run.responses["m3", "o1@n2"]
    assert names(run, third.direct) == {"m3:o1", "m1:o1", "m1:o1'"}  # a conflicts with a, not with b
    assert names(run, third.before) == {"m3:o1", "m1:o1", "m1:o1'"}


@pytest.mark.parametrize(
    ("counting", "ordered", "base"),
    [
        ("next/requests/computer/ob", 1, 2),  # m1 m2 yes, m2 m3 no
        ("next/requests/computer/significant", 1, 2),
        ("next/all/computer/ob", 2, 4),  # on n1: m1' m2' yes, m2' m3' no
        ("next/all/computer/rule", 2, 4),  # the same two: m1 m2 from one sender, m1' m2' from one sender
        ("next/all/replica/ob", 2, 3),  # m3' goes to another transaction than m1' and m2'
        ("some/requests/replica/ob", 2, 2),  # m2 after m1, m3 after m1
        ("some/requests/replica/significant", 1, 2),
        ("causal/requests/replica/ob", 2, 3),
        ("causal/requests/replica/significant", 1, 3),
        ("causal/requests/replica/direct", 1, 3),
        ("causal/requests/anywhere/significant", 1, 3),
        ("total/requests/replica/ob", 2, 3),
        ("total/requests/computer/direct", 1, 3),
    ],
)
def test_countings_of_a_run_known_by_hand(two, counting, ordered, base):
    assert two.tally(counting) == Tally(ordered, base)


def test_compatible_transactions_are_ordered_by_the_network_only():
    story = Story(("a", "a"), o1="n2")
    story.call("m1", "T1", o1="b")
    story.call("m2", "T2", o1="b")
    assert story.tally("causal/requests/replica/ob") == Tally(0, 1)
    assert story.tally("next/all/computer/ob") == Tally(0, 2)


def test_two_objects_of_one_computer_share_its_sequence():
    story = Story(("a", "a"), o1="n2", o2="n2")
    story.call("m1", "T1", o1="a")
    story.call("m2", "T2", o2="a")
    assert story.tally("next/requests/computer/ob") == Tally(0, 1)
    assert story.tally("next/requests/replica/ob") == Tally(0, 0)


def test_a_message_group_is_ordered_by_the_network_only():
    """P0 §4.2: instances leave one after the other, but neither precedes the other."""
    story = Story(o1="n2", o2="n2")
    story.call("m", "T1", o1="a", o2="b")
    run = story.relations()
    assert names(run, run.requests["m", "o2@n2"].network) == {"m:o1"}
    assert story.tally("causal/all/computer/ob") == Tally(0, 2)  # both requests, and both responses
    assert story.tally("next/requests/computer/ob") == Tally(0, 1)


def test_fig_5_what_one_instance_of_a_group_precedes_the_other_does_too():
    """P0 Fig. 5: m1 and m2 are one group; the instance of m1 sends m3 to the object that m2 goes to."""
    story = Story(o1="n2", o2="n3")
    story.send("m", "T1", o1="a", o2="b")
    story.start("m", "o1")
    story.sent["one"] = (*story.sent["m"][:3], ["o1"], *story.sent["m"][4:])
    story.send("m3", "one", o2="c")
    story.start("m", "o2")
    story.start("m3")
    run = story.relations()
    m3 = run.requests["m3", "o2@n3"]
    assert names(run, m3.before) == {"m:o1", "m:o2"}
    assert names(run, m3.network) == {"m:o1"}  # "m2 does not causally precede m3"
    assert Counter(run).tally(Counting("next", "requests", "replica", "ob")) == Tally(1, 1)


@pytest.mark.parametrize(("method", "ordered"), [("a", True), ("b", False)])
def test_messages_of_conflicting_threads(method, ordered):
    """P0 Def. 1.2: nested calls x and y of two transactions are ordered iff the methods that make them conflict."""
    story = Story(("a", "a"), o1="n2", o2="n3")
    for group, transaction, how, nested in (("m1", "T1", "a", "x"), ("m2", "T2", method, "y")):
        story.send(group, transaction, o1=how)
        story.start(group)
        story.call(nested, group, o2="c")
        story.end(group)
        story.receive(group)
    run = story.relations()
    y = run.requests["y", "o2@n3"]
    assert ("x:o2" in names(run, y.direct)) is ordered
    assert ("x:o2" in names(run, y.before)) is ordered
    assert "x:o2" in names(run, y.network)
    assert story.tally("next/requests/replica/rule") == Tally(
        int(ordered), 2
    )  # m1 and m2 conflict, but T2 knows not of m1


def test_replicated_objects_are_refused():
    story = Story(o1="n2")
    story.call("m1", "T1", o1="a")
    for trace in story.traces.values():
        trace.header.objects["o1"] = Placed(("o1@n2", "o1@n1"), ())
    records = story.traces["n1"].records
    records[0] = msgspec.structs.replace(records[0], dests=(("o1@n2", 1), ("o1@n1", 1)))
    with pytest.raises(ValueError, match="one replica"):
        story.relations()


# the workload


@pytest.mark.parametrize("percent", range(0, 101, 10))
def test_the_conflict_ratio_is_exact_on_every_object(percent):
    forest = Forest("1", Workload(conflict=percent / 100))
    for o in forest.objects:
        assert sum(o.relation.methods(a, b) for a, b in PAIRS) == percent // 10


def test_between_tenths_the_ratio_is_exact_over_all_objects():
    forest = Forest("1", Workload(conflict=0.25, nodes=10, objects=20))
    counts = [sum(o.relation.methods(a, b) for a, b in PAIRS) for o in forest.objects]
    assert sorted(set(counts)) == [2, 3]
    assert sum(counts) == 50


def test_a_higher_ratio_only_adds_conflicts():
    before = set()
    for percent in range(0, 101, 10):
        forest = Forest("3", Workload(conflict=percent / 100))
        now = {(o.name, p) for o in forest.objects for p in PAIRS if o.relation.methods(*p)}
        assert before <= now
        before = now


def test_one_or_two_objects_on_every_node():
    forest = Forest("2", Workload())
    held = Count(r.partition("@")[2] for o in forest.objects for r in o.replicas)
    assert sorted(held) == forest.nodes
    assert set(held.values()) == {1, 2}


@pytest.mark.parametrize("ucast", [0.0, 0.5, 1.0])
def test_calls_are_nested_three_deep_and_the_same_whatever_the_transmission(ucast):
    happened = traces(5, Workload(ucast=ucast, transactions=1))
    assert judge(happened).violations == []
    sends = [r for t in happened for r in t.records if r.event == "send"]
    asked = Count(r.invocation.replace("/", ".").count(".") for r in sends for _ in r.dests)
    assert sorted(asked) == [1, 2, 3]
    assert {r.receipt for r in sends} == {1.0: {"srec"}, 0.0: {"crec"}}.get(ucast, {"srec", "crec"})
    targets = sorted(r.replica + r.invocation for t in happened for r in t.records if r.event == "deliver")
    first = traces(5, Workload(ucast=0.5, conflict=0.0, transactions=1))
    assert targets == sorted(r.replica + r.invocation for t in first for r in t.records if r.event == "deliver")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"conflict": 1.5}, "between 0 and 1"),
        ({"nodes": 4}, "each has one or two"),
        ({"objects": 5}, "each has one or two"),
        ({"nodes": 4, "objects": 8}, "at least 9"),
        ({"least": 0}, "at least 1"),
        ({"transactions": 0}, "at least 1"),
    ],
)
def test_workloads_that_cannot_be(settings, words):
    with pytest.raises(BadRequest, match=words):
        Workload(**settings)


# the curves


@pytest.fixture(scope="module")
def small():
    return fig9.run(fig9.Sweep(seeds=2, step=60))


def test_what_the_paper_says_of_the_curves(small):
    """P0 §6: the more conflicts, the fewer need no order; "the more messages invoked by mcast or pcast, the fewer
    messages are required to be ordered"."""
    curves = {u: {p.conflict: p.mean for p in fig9.curve(small, u)} for u in fig9.CURVES}
    for curve in curves.values():
        assert 100 >= curve[0] > curve[60] > curve[100] >= 0
    assert curves[0.0][60] > curves[0.5][60] > curves[1.0][60]


def test_at_full_conflict_all_requests_of_an_object_are_ordered(small):
    for how in ("next", "total"):
        for ucast in fig9.CURVES:
            points = fig9.curve(small, ucast, Counting(how, "requests", "replica", "ob"))
            assert {p.conflict: p.mean for p in points}[100] == 0


def test_the_report_has_everything(small):
    said = fig9.report(fig9.Sweep(seeds=2, step=60), small)
    assert said["settings"]["seeds"] == [0, 1]
    assert [c["ucast"] for c in said["curves"]] == [0, 50, 100]
    assert [c["ucast_measured"] for c in said["curves"]][::2] == [0, 100]
    assert {(p["ucast"], p["not_ordered"]) for p in said["paper"]} == {(100, 50.0), (50, 66.3), (0, 73.2)}
    point = said["curves"][0]["points"][1]
    assert set(point) == {"conflict", "mean", "deviation", "interval", "n"}
    assert point["n"] == 2
    assert said["countings"][str(MAIN)]["0"]["60"] == point["mean"]


def test_a_point_by_hand():
    point = fig9._point(60, [40.0, 50.0, 60.0])
    assert (point.mean, point.deviation, point.n) == (50.0, 10.0, 3)
    assert point.interval == pytest.approx(1.96 * 10 / 3**0.5, abs=1e-3)
    assert fig9._point(0, [7.0]).deviation == 0


def test_workers_change_nothing():
    sweep = fig9.Sweep(seeds=1, step=100, workload=Workload(transactions=1))
    told = []
    assert fig9.run(sweep, 2, lambda: told.append(1)) == fig9.run(sweep, 1)
    assert len(told) == 6


def test_steps_that_do_not_divide_a_hundred_end_there():
    assert fig9.Sweep(step=30).ratios == [0, 30, 60, 90, 100]
