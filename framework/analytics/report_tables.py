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


def tables(found: Found) -> str:
    show = lambda field, value: _cell(found, field, value)  # noqa: E731
    summary = [
        ("calls", "calls"),
        ("errors", "errors"),
        ("rate", "per " + unit(found)),
        ("mean", "mean"),
        ("p50", "p50"),
        ("p95", "p95"),
        ("p99", "p99"),
        ("p999", "p99.9"),
        ("max", "max"),
    ]
    wanted = [
        ("violations", "Violations", [("rule", "rule"), ("place", "where"), ("invocation", "call"), ("text", "what")]),
        ("calls", "Calls by method", [("object", "object"), ("method", "method"), *summary]),
        ("calls_by", "Calls by what they are", [("what", "by"), ("value", "value"), *summary]),
        (
            "errors",
            "Errors",
            [
                ("status", "error"),
                ("object", "object"),
                ("method", "method"),
                ("calls", "calls"),
                ("invocation", "first"),
                ("example", "which says"),
            ],
        ),
        (
            "budget",
            "Where the time went: mean, by method",
            [
                ("object", "object"),
                ("method", "method"),
                ("calls", "calls"),
                ("slow", "slow"),
                *zip(PARTS, PART_NAMES, strict=True),
                ("negative", "negative, left out"),
            ],
        ),
        (
            "heat",
            "Conflicts that cost most waiting",
            [
                ("object", "object"),
                ("method", "method"),
                ("waits_for", "waits for"),
                ("key", "key"),
                ("times", "times"),
                ("waited", "waited"),
                ("longest", "longest"),
            ],
        ),
        (
            "ratio",
            "Messages: ordered against not",
            [
                ("ucast", "ucast"),
                ("conflict_ratio", "conflict ratio"),
                ("messages", "messages"),
                ("needed", "order needed"),
                ("conflicting", "of them by conflict"),
                ("not_ordered", "not ordered, %"),
            ],
        ),
        (
            "imposed",
            "What the protocol did to order requests",
            [
                ("object", "object"),
                ("method", "method"),
                ("delivered", "delivered"),
                ("fast", "agreed fast"),
                ("slow", "agreed slow"),
                ("not_agreed", "no agreement"),
                ("with_context", "with context"),
            ],
        ),
        (
            "clocks",
            "Clocks",
            [
                ("node", "clock"),
                ("of", "against"),
                ("offset", "ahead by"),
                ("error", "± at most"),
                ("steady", "steady"),
            ],
        ),
        ("lives", "Traces", [("life", "life"), ("records", "records"), ("missing", "missing"), ("ended", "ended")]),
    ]
    parts = ["<h2>Tables</h2>"]
    for name, heading, columns in wanted:
        rows = found.rows.get(name, [])
        if not rows:
            continue
        most = rows[:25]
        total = found.totals.get(name, len(rows))
        more = (
            f'<p class="soft">The first {len(most)} of {total}; all are in tables/{name}.</p>'
            if total > len(most)
            else ""
        )
        parts.append(f"<h3>{escape(heading)}</h3>{plot.table(columns, most, show)}{more}")
    return "".join(parts)


_TIMES = {"mean", "p50", "p90", "p95", "p99", "p999", "max", "waited", "longest", "offset", "error", *PARTS}


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
