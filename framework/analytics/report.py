"""The report of an analysis as one HTML file: verdict first, then plots, tables, settings, and how complete it all
is."""

from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec

from framework.analytics import plot
from framework.analytics.analyze import Found
from framework.analytics.budget import PARTS
from framework.analytics.compare import Difference
from framework.analytics.fig9_points import RATIOS, SIMULATED
from framework.analytics.page import box, cards, page
from framework.analytics.report_tables import PART_NAMES, shown, shown_time, tables, unit
from framework.sim.fig9 import PAPER, PAPER_C
from framework.version import __version__

_UCAST_COLOUR = {0.0: 0, 0.5: 1, 1.0: 2}
_IN_ORDER = ("stopped", "left the group")
MOST_BARS = 14
MOST_HEAT = 12
MOST_EMPTY = 1000  # stretches of time in a row without any call


def html(found: Sequence[Found], differences: Sequence[Difference] = ()) -> str:
    """One run, or two with what differs between them."""
    title = "obo: " + " against ".join(one.name for one in found)
    parts = [f"<h1>{escape(title)}</h1>"]
    if differences:
        parts.append(_comparison(found, differences))
    for one in found:
        if len(found) > 1:
            parts.append(f"<h1>{escape(one.name)}</h1>")
        parts.append(_run(one))
    parts.append(f'<p class="soft">obo {escape(__version__)}. How to read this: docs/analytics.md.</p>')
    return page(title, "\n".join(parts))


def _run(found: Found) -> str:
    parts = [_verdict(found), _facts(found), "<h2>Plots</h2>", f'<div class="plots">{"".join(_plots(found))}</div>']
    return "\n".join([*parts, tables(found), _complete(found), _settings(found)])


def _verdict(found: Found) -> str:
    missing = [note for note in found.notes if note.count]
    lines = [f"{rule}: {count} violation{'s' * (count != 1)}" for rule, count in sorted(found.violations.items())]
    lives = found.rows.get("lives", ())
    records = sum(row["records"] for row in lives)
    asked = f"A1 to A4, A7, receipts and what nodes left open, over {records:,} records of {len(lives)} traces"
    if found.undecided:
        lines.append(f"{found.undecided} requests were followed for {found.rounds} rounds and not to the end")
    lines += [f"{row['life']}: {row['ended']}" for row in lives if row["ended"] not in _IN_ORDER]
    if not found.judged:
        return box("part", "Not judged: there are no traces", ["Only what clients saw is analysed."])
    if found.unsure:
        holes = [f"{note.what}: {note.where}" for note in missing if note.hole][:5]
        why = "These may come from what is missing: nobody can say. They are in the table below."
        return box("part", "Not judged: records are missing", [*holes, *lines, why, asked])
    if found.violations:
        first = [str(row["text"]) for row in found.rows.get("violations", ())[:5]]
        return box("bad", "Violations found", [*lines, *first, asked])
    if missing or not found.whole:
        return box("part", "No violation found in what is there; the data is not whole", [*lines, asked])
    return box("good", "No violation found", [*lines, asked])


def _facts(found: Found) -> str:
    rows = found.rows.get("calls", [])
    calls, errors = sum(r["calls"] for r in rows), sum(r["errors"] for r in rows)
    time = found.rows.get("over_time", [])
    best = sorted((r["rate"] for r in time), reverse=True)
    facts = [("calls", f"{calls:,}"), ("errors", f"{errors:,}")]
    if rows:
        first, last = min(r["first"] for r in rows), max(r["last"] for r in rows)
        facts.append(("calls per " + unit(found), plot.number(calls / max(last - first, 1e-9))))
        facts.append(("lasted", shown_time(found, last - first)))
    if best:
        facts.append(("at best", plot.number(best[0])))
    every = [r for r in found.rows.get("calls_by", []) if r["what"] == "kind"]
    main = max(every, key=lambda r: r["calls"], default=None)
    if main is not None:
        facts += [(f"{main['value']} {p}", shown_time(found, main[p])) for p in ("p50", "p99")]
    ratio = found.rows.get("ratio", [])
    messages, needed = sum(r["messages"] for r in ratio), sum(r["needed"] for r in ratio)
    if messages:
        facts.append(("messages not ordered", f"{100 * (1 - needed / messages):.1f} %"))
    if found.changes:
        facts.append(("view changes", str(len({view for *_, view in found.changes}))))
    return cards(facts)


def _plots(found: Found) -> list[str]:
    draw = (_overshown_time, _by_node, _distribution, _budget, _heat, _ratio)
    drawn = [one for which in draw for one in which(found)]
    return drawn or ["<p>Nothing to draw: no call ended.</p>"]


def _marks(found: Found) -> list[tuple[float, str]]:
    seen: dict[int, float] = {}
    for at, _, view in found.changes:
        seen.setdefault(view, at)
    return [(at, f"view {view}") for view, at in sorted(seen.items())]


def _overshown_time(found: Found) -> list[str]:
    rows = sorted(found.rows.get("over_time", []), key=lambda r: r["t"])
    if not rows:
        return []
    x = plot.Axis(min(0.0, rows[0]["t"]), max(r["t"] for r in rows) or 1.0, f"time [{unit(found)}]")
    width = _width(rows)
    rate = plot.Line("calls", _filled([(r["t"], r["rate"]) for r in rows], width), 0)
    wrong = plot.Line("errors", _filled([(r["t"], r["errors"] / width) for r in rows], width), 1)
    drawn = [rate, *([wrong] if any(r["errors"] for r in rows) else [])]
    marks = _marks(found)
    per = f"calls per {unit(found)}"
    out = [plot.lines("Throughput", x, plot.axis([r["rate"] for r in rows], per), drawn, marks)]
    lat = [
        plot.Line(name, [(r["t"], r[name]) for r in rows if r[name] is not None and r[name] > 0], n)
        for n, name in enumerate(("p50", "p95", "p99"))
    ]
    values = [v for line in lat for _, v in line.points]
    if values:
        y = plot.axis(values, f"latency [{unit(found)}]", log=True, show=lambda v: shown_time(found, v))
        out.append(plot.lines("Latency over time", x, y, lat, marks))
    return out


def _width(rows: Sequence[dict[str, Any]]) -> float:
    """Of a stretch of time."""
    return rows[0]["calls"] / rows[0]["rate"] if rows and rows[0]["rate"] else 1.0


def _filled(points: list[tuple[float, float]], width: float) -> list[tuple[float, float]]:
    """A stretch in which no call ended has no row: nothing happened there, and a line must not say otherwise."""
    found: list[tuple[float, float]] = []
    for t, value in sorted(points):
        last = found[-1][0] if found else t
        missing = min(round((t - last) / width) - 1, MOST_EMPTY)
        found += [(last + n * width, 0.0) for n in range(1, missing + 1)]
        found.append((t, value))
    return found


def _by_node(found: Found) -> list[str]:
    """Who served the calls: shows where clients went when a node was gone."""
    by: dict[str, list[tuple[float, float]]] = {}
    rows = [r for r in found.rows.get("over_time_by", []) if r["what"] == "node"]
    for r in rows:
        by.setdefault(r["value"], []).append((r["t"], r["rate"]))
    if len(by) < 2:
        return []
    most = sorted(by, key=lambda name: -sum(rate for _, rate in by[name]))[: plot.COLOURS]
    drawn = [plot.Line(name, _filled(by[name], _width(rows)), n) for n, name in enumerate(sorted(most))]
    times = [t for line in drawn for t, _ in line.points]
    x = plot.Axis(min(0.0, *times), max(times) or 1.0, f"time [{unit(found)}]")
    y = plot.axis([rate for line in drawn for _, rate in line.points], f"calls per {unit(found)}")
    return [plot.lines("Throughput by the node that clients called", x, y, drawn, _marks(found))]


def _distribution(found: Found) -> list[str]:
    by: dict[str, dict[int, int]] = {}
    for r in found.rows.get("distribution", []):
        by.setdefault(f"{r['object']}.{r['method']}", {})[r["bucket"]] = r["calls"]
    most = sorted(by, key=lambda name: -sum(by[name].values()))[: plot.COLOURS]
    if not most:
        return []
    drawn = []
    for n, name in enumerate(most):
        total, at, points = sum(by[name].values()), 0, []
        for bucket in sorted(by[name]):
            at += by[name][bucket]
            points.append((10 ** ((bucket + 1) / 10), 100 * at / total))
        first = 10 ** (min(by[name]) / 10)
        drawn.append(plot.Line(name, [(first, 0.0), *points], n))
    x = plot.axis(
        [a for line in drawn for a, _ in line.points], "latency", log=True, show=lambda v: shown_time(found, v)
    )
    y = plot.Axis(0, 100, "percent of calls that took at most so long")
    return [plot.lines("Latency, distribution", x, y, drawn)]


def _budget(found: Found) -> list[str]:
    rows = found.rows.get("budget", [])[:MOST_BARS]
    if not rows:
        return []
    bars = [(f"{r['object']}.{r['method']}", [r[p] or 0.0 for p in PARTS]) for r in rows]
    title = "Where the time of a call went: mean, by method"
    return [plot.stacks(title, "from when it was due to its answer", PART_NAMES, bars, lambda v: shown_time(found, v))]


def _heat(found: Found) -> list[str]:
    rows = found.rows.get("heat_methods", [])
    if not rows:
        return []
    total: dict[str, float] = {}
    values: dict[tuple[str, str], float] = {}
    for r in rows:
        one, other = f"{r['object']}.{r['method']}", f"{r['object']}.{r['waits_for']}"
        values[one, other] = values.get((one, other), 0.0) + r["waited"]
        for name in (one, other):
            total[name] = total.get(name, 0.0) + r["waited"]
    names = sorted(sorted(total, key=lambda n: -total[n])[:MOST_HEAT])
    title = "Waiting for conflicting calls: who (rows) for whom (columns), total time"
    return [plot.heat(title, names, names, values, lambda v: shown_time(found, v))]


def _ratio(found: Found) -> list[str]:
    rows = found.rows.get("ratio", [])
    if not rows:
        return []
    drawn = []
    for ucast, points in SIMULATED.items():
        spread = [(float(c), m - d, min(100.0, m + d)) for c, (m, d) in zip(RATIOS, points, strict=True)]
        colour = _UCAST_COLOUR[ucast]
        sim = [(float(c), m) for c, (m, _) in zip(RATIOS, points, strict=True)]
        drawn.append(plot.Line(f"simulator, ucast {100 * ucast:.0f} %", sim, colour, "dashed", spread))
    for ucast, value in PAPER.items():
        drawn.append(
            plot.Line(f"P0, ucast {100 * ucast:.0f} %", [(float(PAPER_C), value)], _UCAST_COLOUR[ucast], "dots")
        )
    labelled: dict[float, list[tuple[float, float]]] = {}
    for r in rows:
        if r["ucast"] is not None and r["conflict_ratio"] is not None:
            labelled.setdefault(r["ucast"], []).append((100 * r["conflict_ratio"], r["not_ordered"]))
    for n, (ucast, found_points) in enumerate(sorted(labelled.items())):
        colour = _UCAST_COLOUR.get(ucast, 3 + n % 5)
        drawn.append(plot.Line(f"this run, ucast {100 * ucast:.0f} %", sorted(found_points), colour))
    if not labelled:
        messages, needed = sum(r["messages"] for r in rows), sum(r["needed"] for r in rows)
        share = 100 * (1 - needed / messages) if messages else 0.0
        drawn.append(plot.Line("this run (its conflict ratio is not known)", [(0.0, share), (100.0, share)], 6))
    x = plot.Axis(0, 100, "rate of conflicting methods [%]")
    y = plot.Axis(0, 100, "messages not ordered [%]")
    return [plot.lines("Messages that need no order: this run, beside P0's Fig. 9", x, y, drawn)]


def _complete(found: Found) -> str:
    lines = [
        f"<li>{escape(n.what)} ({escape(n.where)}{f', {n.count}' if n.count > 1 else ''})</li>" for n in found.notes
    ]
    for r in found.rows.get("lives", []):
        if r["ended"] not in _IN_ORDER:
            lines.append(f"<li>{escape(str(r['life']))}: {escape(str(r['ended']))} after {r['records']:,} records</li>")
    negative = sum(r["negative"] or 0 for r in found.rows.get("budget", []))
    if negative:
        lines.append(f"<li>{negative} durations came out negative and were left out: clocks disagree there</li>")
    for one in found.rows.get("clocks", []):
        if not one["steady"]:
            lines.append(f"<li>the clock of {escape(one['node'])} was set, or drifts: its times are not corrected</li>")
        elif one["offset"]:
            lines.append(
                f"<li>the clock of {escape(one['node'])} is ahead by {shown_time(found, one['offset'])}: corrected</li>"
            )
    told = "".join(lines) or "<li>nothing is missing</li>"
    took = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found.lasted.items())
    slow = f"<details><summary>How long the analysis took</summary><p>{escape(took)}</p></details>"
    return f"<h2>How complete this is</h2><ul>{told}</ul>{slow}"


def _settings(found: Found) -> str:
    if not found.settings:
        return "<h2>Settings</h2><p>There is no run.toml.</p>"
    text = msgspec.json.format(msgspec.json.encode(found.settings), indent=2).decode()
    inside = f"<details open><summary>run.toml</summary><pre>{escape(text)}</pre></details>"
    return f"<h2>Settings</h2><p>{escape(found.path)}</p>{inside}"


def _comparison(found: Sequence[Found], differences: Sequence[Difference]) -> str:
    first, second = found
    worse = [d for d in differences if d.word == "worse"]
    better = [d for d in differences if d.word == "better"]
    kind = "bad" if worse else "good"
    head = f"{second.name} against {first.name}: {len(worse)} figures worse, {len(better)} better"
    lines = [
        "Each run in 20 stretches; Welch's 95 % interval of the difference of their means. "
        "No difference is claimed where the interval holds 0."
    ]
    rows = []
    for d in sorted(differences, key=lambda d: (d.object != "", d.object, d.method, d.figure)):
        a, b, change, low, high = (shown(first, d.figure, v) for v in (d.first, d.second, d.change, d.low, d.high))
        name = f"{d.object}.{d.method}" if d.object else "all calls"
        rows.append(
            {
                "what": name,
                "figure": d.figure,
                "first": a,
                "second": b,
                "change": change,
                "interval": f"{low} … {high}",
                "word": d.word,
            }
        )
    columns = [
        ("what", "what"),
        ("figure", "figure"),
        ("first", first.name),
        ("second", second.name),
        ("change", "change"),
        ("interval", "95 % interval"),
        ("word", ""),
    ]
    return box(kind, head, lines) + plot.table(columns, rows, lambda _, value: str(value))
