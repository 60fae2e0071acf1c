"""What one look at the tables says there may be: never less than the rules find, and of a clean run nothing."""

import msgspec
import pytest

from framework.analytics import answers, groups, once, reading, states, tables, verdict
from framework.analytics.seen import Seen
from framework.trace.files import Trace

from .small import DEPOSIT, Node, three_calls
from .universe import numbered, write

ALL = Seen(**dict.fromkeys(Seen.__struct_fields__, True))
RULES = (once.twice, once.never_sent, once.copies, once.not_running, once.sessions, states.halves, answers.incomplete)
COPY = {"replica": "bank@n1", "group": "4:tran@n2:0", "invocation": "ann/1"}


END = {"replica": "bank@n1", "invocation": "ann/1"}


def changed(node, change):
    """three_calls, the records of one node as ``change`` makes them."""
    found = three_calls()
    for n, trace in enumerate(found):
        if trace.header.node == node:
            found[n] = Trace(trace.header, numbered(change(list(trace.records))))
    return found


def extra(node, event, after=None, first=False, **fields):
    """One record more: before all, before the end, or after the first one of such an event."""
    other = Node(node)
    other.add(19.0, event, **fields)

    def change(records):
        at = 0 if first else len(records) - 1
        if after is not None:
            at = next(n for n, r in enumerate(records) if r.event == after) + 1
        return [*records[:at], *other.records, *records[at:]]

    return changed(node, change)


def copied(*duplicates, first=False):
    """ann/1 sent once more, from n2, and what n1 says of it."""
    again = Node("n2")
    again.send(9.0, "4:tran@n2", 0, "ann/1", DEPOSIT, dests=("bank@n1",))
    there = Node("n1")
    for invocation in duplicates:
        there.add(9.5, "duplicate", **{**COPY, "invocation": invocation})
    found = three_calls()
    n1, n2 = (list(t.records) for t in found)
    n1 = [*there.records, *n1] if first else [*n1[:-1], *there.records, n1[-1]]
    return [Trace(t.header, numbered(rows)) for t, rows in zip(found, (n1, [*again.records, *n2]), strict=True)]


def without(node, event, **fields):
    def kept(r):
        return r.event != event or any(getattr(r, name) != value for name, value in fields.items())

    return changed(node, lambda records: [r for r in records if kept(r)])


def undone(records):
    return [msgspec.structs.replace(r, committed=False) if r.event == "end" else r for r in records]


def short(records):
    return [msgspec.structs.replace(r, received=r.received[:1]) if r.event == "receive" else r for r in records]


#: what is wrong: the traces, what has to be seen (None: it is always looked for), and which rule says so
WRONG = {
    "never sent": (without("n2", "send"), "stray", once.never_sent),
    "a copy of nothing": (extra("n1", "duplicate", **COPY), "late_copy", once.copies),
    "a copy before its call": (copied("ann/1", first=True), "late_copy", once.copies),
    "a copy answered twice": (copied("ann/1", "ann/1"), "late_copy", once.copies),
    "a copy of another call": (copied("ann/7"), "late_copy", once.copies),
    "ended twice": (extra("n1", "end", **END, sid="5:bank@n1"), "wild", once.not_running),
    "ended and never began": (extra("n1", "end", **END, sid="7:bank@n1"), "wild", once.not_running),
    "sends and was not started": (
        extra("n1", "send", sid="8:bank@n1", group="8:bank@n1:0", invocation="ann/1.1"), "wild", once.not_running,
    ),
    "sends before it started": (
        extra("n1", "send", first=True, sid="5:bank@n1", group="5:bank@n1:0", invocation="ann/1.1"), "wild",
        once.not_running,
    ),
    "performed again": (
        extra("n1", "deliver", replica="bank@n1", group="1:tran@n1:0", invocation="ann/1", sid="7:bank@n1",
              footprint=DEPOSIT), "again", once.twice,
    ),
    "performed, and nothing else": (
        extra("n1", "deliver", replica="bank@n1", group="9:tran@n2:0", invocation="dan/1", sid="9:bank@n1",
              footprint=DEPOSIT), "stray", once.never_sent,
    ),
    "committed at one of two": (changed("n2", undone), "undone", states.halves),
    "a receipt too short": (changed("n1", short), None, answers.incomplete),
    "a session from nowhere": (
        extra("n1", "send", sid="6:tran@n1", group="6:tran@n1:0", client="dan", sessions=("3:tran@n9:0 sent",)), None,
        once.sessions,
    ),
}  # fmt: skip


def judged(spark, base, traces):
    """What is seen, and what the rules say then; and what they say if all of them are asked."""
    write(base / "run", {"": traces})
    run = reading.read(spark, base / "run")
    who = groups.find(run)
    found, _ = verdict.stage(spark, tables.make(spark, run, who, base), base)

    def told(made):
        return {rule: sorted(tuple(r) for r in rule(made).collect()) for rule in RULES}

    return found.seen, told(found), told(msgspec.structs.replace(found, seen=ALL))


def test_of_a_clean_run_nothing_is_seen(spark, tmp_path):
    seen, found, every = judged(spark, tmp_path, three_calls())
    assert not any(msgspec.structs.astuple(seen))
    assert found == every and not any(every.values())


def test_a_copy_of_what_was_performed_is_fine(spark, tmp_path):
    seen, found, every = judged(spark, tmp_path, copied("ann/1"))
    assert not seen.late_copy and not every[once.copies] and found == every


@pytest.mark.rotating(8)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_seen_and_found(spark, tmp_path, name):
    traces, what, rule = WRONG[name]
    seen, found, every = judged(spark, tmp_path, traces)
    assert every[rule], "the rule itself finds it"
    assert what is None or getattr(seen, what)
    assert found == every
