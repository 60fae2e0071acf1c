"""Traces of nodes that leave and come back: what the recorder writes, where, and which files do not fit together."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from framework.com.events import AnyEffect, Installed, Isolated, Out, Snapshot
from framework.com.telling import Changing
from framework.com.view import Directory, Placement, View
from framework.errors import BadTrace
from framework.footprint import Relation
from framework.ids import Node, Replica
from framework.sim.oracle import judge
from framework.trace.check import check, load
from framework.trace.files import Trace, file_name, write
from framework.trace.record import Record
from framework.trace.recorder import Recorder, header

N1, N2, N3 = Node("n1"), Node("n2"), Node("n3")
FIRST = View(1, (N1, N2, N3))
SECOND = View(2, (N1, N2), (1, 1), (1, 1))
THIRD = View(3, (N1, N2, N3), (1, 1, 3), (1, 1, 2))
F1, F3 = Replica("f@n1"), Replica("f@n3")


def directory(view: View) -> Directory:
    return Directory(view, [Placement("f", Relation({}), ["n1", "n2", "n3"])], (N1, N2, N3))


class Life:
    """One that records, as a driver does."""

    def __init__(self, node: Node, view: View) -> None:
        self.records: list[Record] = []
        self.trace = Trace(header(node, directory(view), durable=["f"]), self.records)
        self.recorder = Recorder(node, view.version, self.records.append, view.life(node) or 1)

    def take(self, *effects: AnyEffect) -> "Life":
        for effect in effects:
            self.recorder.effect(effect, 1.5)
        return self


def a_run() -> list[Trace]:
    """n3 crashes, is left out, and joins again with the state of n1."""
    n1, n2, gone = (Life(n, FIRST) for n in (N1, N2, N3))
    out, in_ = Installed(SECOND, (N3,), ()), Installed(THIRD, (), (N3,))
    n1.take(Changing((N3,)), out, in_, Snapshot(F1, N3, b"part"))
    n2.take(out, in_)
    back = Life(N3, THIRD)
    back.recorder.adopt(2.0, F3, n1.recorder.ticket(F1))
    for life in (n1, n2, back):
        life.recorder.stop(3.0, ())
    return [n1.trace, n2.trace, gone.trace, back.trace]


def test_what_is_recorded() -> None:
    n1, _, _, back = a_run()
    assert [(r.event, r.view, r.members, r.since) for r in n1.records[:3]] == [
        ("change", 1, ("n3",), ()),
        ("install", 2, ("n1", "n2"), ()),
        ("install", 3, ("n1", "n2", "n3"), (1, 1, 3)),
    ]
    assert (n1.records[3].event, n1.records[3].replica, n1.records[3].to, n1.records[3].view) == (
        "snapshot", "f@n1", "n3", 3,
    )  # fmt: skip
    assert (back.records[0].event, back.records[0].replica, back.records[0].ticket) == ("adopt", "f@n3", "f@n1#1#4")
    assert (n1.header.life, n1.header.since, n1.header.view) == (1, (), 1)
    assert (back.header.life, back.header.since, back.header.view) == (3, (1, 1, 3), 3)
    assert back.header.objects["f"].durable


def test_out_and_what_is_not_recorded() -> None:
    life = Life(N1, FIRST).take(Isolated(True), Out("excluded in view 2"))
    assert [(r.event, r.why) for r in life.records] == [("out", "excluded in view 2")]


def test_a_later_life_has_its_own_tickets() -> None:
    assert Life(N3, THIRD).take(Snapshot(F3, N1, b"")).recorder.ticket(F3) == "f@n3#3#1"


def test_each_life_has_its_file(tmp_path: Path) -> None:
    assert file_name("n1") == "n1.jsonl"
    run = a_run()
    for trace in run:
        write(tmp_path / file_name(trace.header.node, trace.header.life), trace)
    files = sorted(tmp_path.glob("*.jsonl"))
    assert [f.name for f in files] == ["n1.jsonl", "n2.jsonl", "n3.jsonl", "n3.since3.jsonl"]
    assert sorted(load(files), key=lambda t: (t.header.node, t.header.life)) == run


def head(n: int, **fields: Any) -> Callable[[list[Trace]], None]:
    def spoil(run: list[Trace]) -> None:
        run[n].header = replace(run[n].header, **fields)

    return spoil


def record(n: int, i: int, **fields: Any) -> Callable[[list[Trace]], None]:
    def spoil(run: list[Trace]) -> None:
        run[n].records[i] = replace(run[n].records[i], **fields)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda run: run.append(run[3]), "0004:1: a second trace of n3 since view 3; the first is 0003"),
        (lambda run: run.pop(2), "0000:1: n3 is a member, but its trace is not here"),
        (head(3, life=2), "0003:1: the life of n3 began with view 2, but since says 3"),
        (head(3, since=(1, 1)), "0003:1: 3 members, but since has 2 numbers"),
        (head(3, since=(1, 7, 3)), "0003:1: n2 is a member of view 3 since view 7"),
        (record(0, 1, members=()), "0000:3: install of view 2: no members"),
        (record(0, 1, members=("n1", "n1")), "0000:3: install of view 2: a member is named twice"),
        (record(0, 2, since=(1, 1)), "0000:4: install of view 3: 3 members, but since has 2 numbers"),
        (record(0, 3, replica="f@n2"), "0000:5: snapshot: replica f@n2 is not on n1"),
        (record(3, 0, replica="g@n3"), "0003:2: adopt: no replica 'g@n3' in the header"),
        (record(3, 0, ticket="f@n1"), "0003:2: adopt: ticket 'f@n1' is none such as bank@n1#1#57"),
        (record(3, 0, ticket="g@n1#1#4"), "0003:2: adopt: f@n3 has taken the state of g@n1"),
        (record(3, 0, ticket="f@n1#1#3"), "0003:2: adopt: the ticket f@n1#1#3 is not of a snapshot of f@n1"),
        (record(3, 0, ticket="f@n3#3#1"), "0003:2: adopt: the ticket f@n3#3#1 is of this life or a later one"),
    ],
)
def test_what_does_not_fit_together(spoil: Callable[[list[Trace]], Any], says: str) -> None:
    run = a_run()
    spoil(run)
    with pytest.raises(BadTrace) as caught:
        check([(Path(f"{n:04}"), trace) for n, trace in enumerate(run)])
    assert says in str(caught.value)


def test_a_state_of_a_donor_that_writes_no_trace() -> None:
    """Traces were switched on while the group went on: nobody can say what is in that state, and that is no mistake."""
    run = a_run()
    record(3, 0, ticket="f@n1#d62340cf3b76064e")(run)
    check([(Path(str(n)), trace) for n, trace in enumerate(run)])
    judged = judge(run)
    assert (judged.violations, judged.torn, judged.adopted) == ([], 1, 1)


def test_one_that_joined_and_died_before_it_wrote_anything_has_no_file() -> None:
    check([(Path(str(n)), trace) for n, trace in enumerate(a_run()[:3])])
