"""Of the traces of ``obo load fig9``: those of one point, counted as the simulator counts its own runs."""

from collections.abc import Sequence

import msgspec

from framework.sim.fig9_count import MAIN, Counter
from framework.sim.fig9_relation import relations
from framework.trace.files import Trace
from framework.trace.record import Record


def of_point(traces: Sequence[Trace], objects: str) -> list[Trace]:
    """What happened to objects whose names begin so, as if nothing else had happened."""
    return [_of_node(trace, objects) for trace in traces]


def _of_node(trace: Trace, objects: str) -> Trace:
    sent: set[str] = set()
    kept: list[Record] = []
    for r in trace.records:
        if r.event == "send" and r.parts[0][0].startswith(objects):
            sent.add(r.group)
            kept.append(r)
        elif (r.event == "receive" and r.group in sent) or r.replica.startswith(objects):
            kept.append(r)
    mine = {name: placed for name, placed in trace.header.objects.items() if name.startswith(objects)}
    return Trace(msgspec.structs.replace(trace.header, objects=mine), kept)


def not_ordered(traces: Sequence[Trace], objects: str) -> float:
    """Percent, as docs/fig9.md defines it."""
    found = Counter(relations(of_point(traces, objects))).tally(MAIN).not_ordered
    assert found is not None
    return found
