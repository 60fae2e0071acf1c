"""A run as an SVG picture: complete in one file, with details where the pointer rests."""

import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from framework.sim.layout import FAULT, LEFT, TOP, Layout
from framework.sim.picture import PHASES, Phase, Picture, Visit
from framework.sim.terminal import waiting_words
from framework.trace.record import Record

_COLOURS = ("#3b76c4", "#e08a1e", "#3d9a57", "#9a5bbf", "#c9a227", "#2a9d9d", "#c4527f", "#7a6a58")
_WAITS: dict[Phase, str] = {"held": "#b08900", "agreement": "#5b7fa6", "turn": "#c0392b"}
_CUT, _STILL = "#d64545", "#5b4a7a"
_BAR = 10.0
_NOTES = 12  # lines of them
_AGAIN = 1200.0  # the name of a node stands on its line again after so much
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = """
text{font-family:ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#222}
.t{font-size:18px;font-weight:600}.s{font-size:11px;fill:#555}.l{font-size:10px}.n{font-size:14px;font-weight:700}
.r{font-size:11px;fill:#444}.f{font-size:10.5px;fill:#9b1c1c;font-weight:600}.a{stroke:#7b8794;fill:none;opacity:.75}
.b{stroke:#7b8794;fill:none;stroke-dasharray:2 3;opacity:.55}
.v:hover rect,.m:hover .a{stroke:#000;stroke-width:2;opacity:1}
"""


def draw(picture: Picture, title: str, notes: Sequence[str] = ()) -> str:
    """The picture as the text of an SVG file. ``notes``: what went wrong; stands below."""
    return "\n".join(Svg(picture, title, notes).parts()) + "\n"


def text(x: float, y: float, words: str, kind: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{more}>{clean(words)}</text>'


def clean(words: str) -> str:
    """Names come from traces, and XML does not take every character."""
    return escape(_NOT_XML.sub("?", words))


class Svg:
    def __init__(self, picture: Picture, title: str, notes: Sequence[str] = ()) -> None:
        self.picture = picture
        self.title = title
        self.notes = list(notes)[:_NOTES]
        self.layout = Layout(picture)
        self.x = self.layout.axis.x
        methods = sorted({v.footprint.method for v in picture.visits.values() if v.footprint is not None})
        self.colours = {m: _COLOURS[n % len(_COLOURS)] for n, m in enumerate(methods)}

    def parts(self) -> Iterator[str]:
        wide, high = self.layout.width, self.layout.height + 18 * len(self.notes) + (12 if self.notes else 0)
        yield '<?xml version="1.0" encoding="UTF-8"?>'
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high:.0f}" '
            f'viewBox="0 0 {wide:.0f} {high:.0f}" role="img" aria-label={quoteattr(clean(self.title))}>'
        )
        yield f"<title>{clean(self.title)}</title><style>{_STYLE}</style>"
        yield from self._patterns()
        yield f'<rect width="{wide:.0f}" height="{high:.0f}" fill="#ffffff"/>'
        yield text(16, 28, self.title, "t")
        yield from self._legend()
        yield from self._bands()
        yield from self._axis()
        for r in self.picture.sends.values():
            yield from self._message(r)
        for r in self.picture.receipts:
            yield from self._answer(r)
        for visit in self.picture.visits.values():
            yield from self._visit(visit)
        for n, note in enumerate(self.notes):
            yield text(16, self.layout.height + 12 + 18 * n, note, "f")
        yield "</svg>"

    def _patterns(self) -> Iterator[str]:
        yield "<defs>"
        yield (
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0,1 L8,4 L0,7 z" fill="#5c6873"/></marker>'
        )
        lines = {"held": "M0,3 H6", "agreement": "M0,6 L6,0", "turn": "M0,6 L6,0 M0,0 L6,6"}
        for phase, colour in _WAITS.items():
            yield (
                f'<pattern id="{phase}" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" '
                f'fill="{colour}" fill-opacity=".13"/><path d="{lines[phase]}" stroke="{colour}" stroke-width="1.1"/>'
                "</pattern>"
            )
        yield "</defs>"

    def _legend(self) -> Iterator[str]:
        waits = [
            (f'<rect width="26" height="10" fill="url(#{p})" stroke="{c}"/>', PHASES[p]) for p, c in _WAITS.items()
        ]
        yield from _row(54.0, waits)
        performed = [(f'<rect width="26" height="10" rx="2" fill="{c}"/>', m) for m, c in self.colours.items()]
        performed.append(('<rect width="26" height="10" fill="#fff" stroke="#222" stroke-dasharray="3 2"/>', "aborted"))
        yield from _row(76.0, [*performed, ("", "performed, by method")])
        signs = [
            ('<circle cx="22" cy="5" r="3.5" fill="#222"/>', "sends"),
            ('<path d="M0,5 h26" class="a" marker-end="url(#head)"/>', "request"),
            ('<path d="M0,5 h26" class="b"/>', "answer that completes a receipt"),
            (_diamond(20, 5, "#222"), "received"),
            (_diamond(20, 5, "#fff"), "copy: answered, not performed"),
        ]
        if self.picture.faults:
            signs.append((f'<rect width="26" height="10" fill="{_CUT}" fill-opacity=".2"/>', "cut off or late"))
            signs.append((f'<rect width="26" height="10" fill="{_STILL}" fill-opacity=".3"/>', "stands still"))
        yield from _row(98.0, signs)

    def _bands(self) -> Iterator[str]:
        for node, (top, height) in self.layout.bands.items():
            right = self.layout.width - 12
            yield f'<rect x="8" y="{top}" width="{right - 4:.1f}" height="{height}" rx="6" fill="#f5f7f9"/>'
            yield from self._faults(node, top, height)
            y = self.layout.line(node)
            yield text(18, y + 5, node, "n")
            yield f'<path d="M{LEFT},{y} H{right:.1f}" stroke="#222" stroke-width="1.4"/>'
            for n in range(1, int((right - LEFT) / _AGAIN) + 1):
                yield text(LEFT + n * _AGAIN, y - 5, node, "r")
        for replica, (top, height) in self.layout.rows.items():
            yield text(26, top + 24, replica, "r")
            y = top + height
            yield f'<path d="M26,{y} H{self.layout.width - 20:.1f}" stroke="#dfe4e8"/>'

    def _faults(self, node: str, top: float, height: float) -> Iterator[str]:
        for n, fault in enumerate(self.layout.told[node]):
            left, right = self.x(fault.start), self.x(fault.end)
            colour, how = (_STILL, ".16") if "still" in fault.text else (_CUT, ".11")
            yield (
                f'<rect x="{left:.1f}" y="{top}" width="{max(2.0, right - left):.1f}" height="{height}" '
                f'fill="{colour}" fill-opacity="{how}">'
                f"<title>{clean(fault.text)}, {fault.start:.1f} to {fault.end:.1f}</title></rect>"
            )
            yield text(left + 4, top + 12 + FAULT * n, fault.text, "f")

    def _axis(self) -> Iterator[str]:
        bottom = self.layout.height - 36
        for x, label in self.layout.axis.ticks():
            yield f'<path d="M{x:.1f},{TOP - 6} V{bottom:.1f}" stroke="#c9d1d9" stroke-dasharray="1 5"/>'
            yield text(x, TOP - 10, label, "s", ' text-anchor="middle"')
            yield text(x, bottom + 14, label, "s", ' text-anchor="middle"')
        for x in self.layout.axis.breaks:
            yield f'<path d="M{x - 3:.1f},{TOP - 2} l3,-9 M{x + 1:.1f},{TOP - 2} l3,-9" stroke="#9b1c1c"/>'
        if self.layout.axis.breaks:
            yield text(16, bottom + 28, "Time runs to the right; // marks where silence is shortened.", "s")

    def _message(self, r: Record) -> Iterator[str]:
        x, y = self.x(r.at), self.layout.sender(r.sid, r.node)
        what = ", ".join(f"{name}.{footprint}" for name, footprint in r.parts)
        yield f'<g class="m"><title>{clean(f"{r.invocation} {r.kind} {r.transmission}: {what} at {r.at:.1f}")}</title>'
        for replica, _ in r.dests:
            visit = self.picture.visits.get((replica, r.group))
            if visit is not None and self.picture.within(visit.arrived):
                to_x, to_y = self.x(visit.arrived), self.layout.bar(visit) + _BAR / 2
                yield f'<path d="M{x:.1f},{y:.1f} L{to_x:.1f},{to_y:.1f}" class="a" marker-end="url(#head)"/>'
        dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="#222"/>' if self.picture.within(r.at) else ""
        yield f"{dot}</g>"

    def _answer(self, r: Record) -> Iterator[str]:
        x, y = self.x(r.at), self.layout.sender(r.sid, r.node)
        for replica, _ in r.received[-1:]:
            visit = self.picture.visits.get((replica, r.group))
            if visit is not None:
                right = self.layout.span(visit)[1]
                yield f'<path d="M{right:.1f},{self.layout.bar(visit) + _BAR / 2:.1f} L{x:.1f},{y:.1f}" class="b"/>'
        yield _diamond(x, y, "#222")

    def _visit(self, visit: Visit) -> Iterator[str]:
        left, right = self.layout.span(visit)
        y = self.layout.bar(visit)
        yield f'<g class="v"><title>{clean(self._details(visit))}</title>'
        if visit.duplicate is not None:
            yield text(left + 6, y - 2, f"{visit.invocation} (copy)", "l", ' fill-opacity=".6"')
        else:
            yield text(left, y - 2, visit.label, "l")
        for phase, start, end in visit.phases(self.picture.now):
            if start > self.picture.window[1] or end < self.picture.window[0]:
                continue
            a, b = self.x(start), self.x(end)
            yield self._bar(visit, phase, a, y, max(1.5, b - a))
        if visit.duplicate is not None:
            yield _diamond(right, y + _BAR / 2, "#fff")
        elif right - left <= 3.0:
            yield self._bar(visit, "performing", left, y, 3.0)
        yield "</g>"

    def _bar(self, visit: Visit, phase: Phase, x: float, y: float, wide: float) -> str:
        place = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{_BAR}"'
        if phase != "performing":
            return f'<rect {place} fill="url(#{phase})" stroke="{_WAITS[phase]}" stroke-width=".6"/>'
        colour = self.colours.get(visit.footprint.method if visit.footprint is not None else "", "#888")
        if visit.committed:
            return f'<rect {place} rx="2" fill="{colour}"/>'
        return f'<rect {place} rx="2" fill="#fff" stroke="{colour}" stroke-width="1.6" stroke-dasharray="3 2"/>'

    def _details(self, v: Visit) -> str:
        lines = [f"{v.label} at {v.replica}", f"arrived {v.arrived:.1f}"]
        if v.duplicate is not None:
            lines.append("a copy of a call performed here: answered, not performed")
        elif v.delivered != v.arrived:
            lines.append(f"waited: {waiting_words(self.picture, v)}")
        if v.delivered is not None:
            lines.append(f"performed from {v.delivered:.1f}" + ("" if v.ended is None else f" to {v.ended:.1f}"))
        if not v.committed:
            lines.append("aborted: it left no trace")
        return "\n".join(lines)


def _row(y: float, items: list[tuple[str, str]]) -> Iterator[str]:
    """Signs with their meaning, side by side."""
    x = 16.0
    for sign, meaning in items:
        yield f'<g transform="translate({x:.1f},{y - 9:.1f})">{sign}{text(32 if sign else 0, 9, meaning, "s")}</g>'
        x += (50 if sign else 18) + len(meaning) * 6.4


def _diamond(x: float, y: float, fill: str) -> str:
    return f'<path d="M{x - 4:.1f},{y:.1f} l4,-4 l4,4 l-4,4 z" fill="{fill}" stroke="#222" stroke-width=".8"/>'
