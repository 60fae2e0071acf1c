"""The tables of the report, and how its numbers are written."""

from html import escape
from typing import Any

from framework.analytics import plot
from framework.analytics.analyze import Found
from framework.analytics.budget import PARTS

PART_NAMES = (
    "client late", "client to node", "network", "held for predecessors", "agreement, fast", "agreement, slow",
    "waiting for a conflicting instance", "performing", "receipt", "node to client",
)  # fmt: skip


#: Fields of a table and their headings, as ``field=heading`` or, where both are the same, ``field``.
_SUMMARY = "calls errors rate mean p50 p95 p99 p999=p99.9 max"
_TABLES = (
    ("violations", "Violations", "rule place=where invocation=call text=what"),
    ("calls", "Calls by method", f"object method {_SUMMARY}"),
    ("calls_by", "Calls by what they are", f"what=by value {_SUMMARY}"),
    ("errors", "Errors", "status=error object method calls invocation=first example=which_says"),
    (
        "budget",
        "Where the time went: mean, by method",
        f"object method calls slow latency {' '.join(PARTS)} negative=negative,_left_out",
    ),
    ("heat", "Conflicts that cost most waiting", "object method waits_for key times waited longest"),
    (
        "ratio",
        "Messages: ordered against not",
        "ucast conflict_ratio messages needed=order_needed conflicting=of_them_by_conflict not_ordered=not_ordered,_%",
    ),
    (
        "imposed",
        "What the protocol did to order requests",
        "object method delivered fast=agreed_fast slow=agreed_slow not_agreed=no_agreement with_context",
    ),
    ("clocks", "Clocks", "node=clock of=against offset=ahead_by error=±_at_most steady"),
    ("lives", "Traces", "life records missing ended"),
)
_SHOWN = 25  # rows


def tables(found: Found) -> str:
    parts = ["<h2>Tables</h2>"]
    for name, heading, fields in _TABLES:
        rows = found.rows.get(name, [])
        if rows:
            columns = [_column(found, field) for field in fields.split()]
            shown = plot.table(columns, rows[:_SHOWN], lambda field, value: _cell(found, field, value))
            total = found.totals.get(name, len(rows))
            more = (
                f'<p class="soft">The first {_SHOWN} of {total}; all are in tables/{name}.</p>'
                if total > _SHOWN
                else ""
            )
            parts.append(f"<h3>{escape(heading)}</h3>{shown}{more}")
    return "".join(parts)


def _column(found: Found, text: str) -> tuple[str, str]:
    field, _, heading = text.partition("=")
    if field == "rate":
        heading = f"per {unit(found)}"
    elif field in PARTS:
        heading = PART_NAMES[PARTS.index(field)]
    return field, (heading or field).replace("_", " ")


_TIMES = {"mean", "p50", "p90", "p95", "p99", "p999", "max", "waited", "longest", "offset", "error", "latency", *PARTS}


def _cell(found: Found, field: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if field in _TIMES and isinstance(value, int | float):
        return shown_time(found, float(value))
    if isinstance(value, float):
        return f"{value:.1f}" if field == "not_ordered" else plot.number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def unit(found: Found) -> str:
    return "s" if found.seconds else "unit of time"


def shown(found: Found, figure: str, value: float | None) -> str:
    """A figure of a comparison: a time, or a rate."""
    return shown_time(found, value) if figure != "rate" else plot.number(value or 0.0)


def shown_time(found: Found, value: float | None) -> str:
    if value is None:
        return "–"
    if not found.seconds:
        return plot.number(value)
    size = abs(value)
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (120.0, 1.0, "s")):
        if size < limit:
            return f"{value * factor:.3g} {unit}" if size else "0"
    return f"{value / 60:.3g} min"
