"""Small plots as inline SVG: colours are classes of the page, so they follow light, dark and print by themselves.

Every plot has a viewBox and no size: it is as wide as the page lets it be. It is narrow (480 units), so that its texts
can still be read on a phone, where the page makes them larger (``page``). Nothing here knows what is shown.
"""

from collections.abc import Callable, Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Any

import msgspec

WIDTH, HEIGHT = 480, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 20, 24, 42
COLOURS = 8  # classes c0 ... c7

Points = Sequence[tuple[float, float]]


class Line(msgspec.Struct):
    name: str
    points: list[tuple[float, float]]
    colour: int = 0
    style: str = ""  # "", "dashed" or "dots"
    spread: list[tuple[float, float, float]] = []  # x, low, high


class Axis(msgspec.Struct):
    low: float
    high: float
    label: str
    log: bool = False
    show: Callable[[float], str] | None = None

    def part(self, value: float) -> float:
        """0 to 1 along the axis."""
        if self.log:
            low, high, value = log10(self.low), log10(self.high), log10(max(value, self.low))
        else:
            low, high = float(self.low), float(self.high)
        return (value - low) / ((high - low) or 1.0)

    def ticks(self) -> list[float]:
        if self.log:
            first, last = floor(log10(self.low)), ceil(log10(self.high))
            every = max(1, ceil((last - first) / 6))
            return [
                10.0**n
                for n in range(first, last + 1, every)
                if self.low <= 10.0**n * 1.0001 and 10.0**n <= self.high * 1.0001
            ]
        step = nice((self.high - self.low) / 5 or 1.0)
        first = ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, floor(self.high / step + 1e-9) + 1)]

    def text(self, value: float) -> str:
        return self.show(value) if self.show else number(value)


def nice(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= step * 0.999)


def number(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return f"{value / 1e6:.4g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:.4g}k"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def axis(values: Sequence[float], label: str, log: bool = False, show: Callable[[float], str] | None = None) -> Axis:
    """One that holds all values; a linear one begins at 0."""
    fine = [v for v in values if isfinite(v) and (v > 0 or not log)]
    if log:
        low, high = (min(fine), max(fine)) if fine else (0.001, 1.0)
        return Axis(10.0 ** floor(log10(low)), 10.0 ** ceil(log10(high) + 1e-9), label, True, show)
    high = max(fine, default=1.0) or 1.0
    return Axis(min(0.0, min(fine, default=0.0)), high * 1.05, label, False, show)


def lines(title: str, x: Axis, y: Axis, drawn: Sequence[Line], marks: Sequence[tuple[float, str]] = ()) -> str:
    """Curves over a common axis; ``marks`` are moments, as upright lines."""
    body = [_frame(x, y)]
    for at, what in marks:
        if x.low <= at <= x.high:
            px = _x(x, at)
            body.append(
                f'<g class="mark"><line x1="{px}" y1="{_TOP}" x2="{px}" y2="{HEIGHT - _BOTTOM}"/>'
                f'<text x="{px + 3}" y="{_TOP + 9}">{escape(what)}</text></g>'
            )
    for line in drawn:
        body.append(_line(x, y, line))
    return _figure(title, "".join(body), [(line.name, line.colour, line.style) for line in drawn if line.name])


def _line(x: Axis, y: Axis, line: Line) -> str:
    colour = f"c{line.colour % COLOURS}"
    out = ""
    if line.spread:
        upper = [f"{_x(x, a)},{_y(y, high)}" for a, _, high in line.spread]
        lower = [f"{_x(x, a)},{_y(y, low)}" for a, low, _ in reversed(line.spread)]
        out += f'<polygon class="fill {colour}" points="{" ".join(upper + lower)}"/>'
    if line.style != "dots" and len(line.points) > 1:
        points = " ".join(f"{_x(x, a)},{_y(y, b)}" for a, b in line.points)
        out += f'<polyline class="line {colour} {line.style}" points="{points}"/>'
    if line.style == "dots" or len(line.points) <= 40:
        radius = 5 if line.style == "dots" or len(line.points) == 1 else 2.5
        hollow = " hollow" if line.style == "dots" else ""
        for a, b in line.points:
            tip = f"<title>{escape(line.name)}: {escape(x.text(a))}, {escape(y.text(b))}</title>"
            out += f'<circle class="dot {colour}{hollow}" cx="{_x(x, a)}" cy="{_y(y, b)}" r="{radius}">{tip}</circle>'
    return out


def stacks(
    title: str,
    label: str,
    names: Sequence[str],
    rows: Sequence[tuple[str, Sequence[float]]],
    show: Callable[[float], str],
) -> str:
    """One bar for each row, of parts that add up; parts have names and colours."""
    left, bar, gap, name_height = 4, 18, 8, 17
    longest = max((sum(parts) for _, parts in rows), default=1.0) or 1.0
    step = name_height + bar + gap
    height = 4 + len(rows) * step + 22
    body = []
    scale = (WIDTH - left - 76) / longest
    for n, (name, parts) in enumerate(rows):
        y = 4 + n * step + name_height
        body.append(f'<text class="name" x="{left}" y="{y - 4}">{escape(_short(name, 50))}</text>')
        at = float(left)
        for k, value in enumerate(parts):
            if value > 0:
                width = value * scale
                tip = f"<title>{escape(name)}, {escape(names[k])}: {escape(show(value))}</title>"
                place = f'x="{at:.1f}" y="{y}" width="{max(width, 0.4):.1f}" height="{bar}"'
                body.append(f'<rect class="bar p{k}" {place}>{tip}</rect>')
                at += width
        body.append(f'<text class="sum" x="{at + 5:.1f}" y="{y + bar * 0.7:.0f}">{escape(show(sum(parts)))}</text>')
    body.append(f'<text class="axis" x="{left}" y="{height - 8}">{escape(label)}</text>')
    used = [k for k in range(len(names)) if any(parts[k] > 0 for _, parts in rows)]
    return _figure(title, "".join(body), [(names[k], k, "part") for k in used], height)


def heat(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: dict[tuple[str, str], float],
    show: Callable[[float], str],
) -> str:
    """A map: the darker, the more. An empty field means nothing happened there."""
    left, top, cell = 136, 96, 34
    width = max(24.0, min(90.0, (WIDTH - left - 60) / max(len(columns), 1)))  # room for the last heading
    most = max(values.values(), default=1.0) or 1.0
    body = []
    for k, name in enumerate(columns):
        x = left + (k + 0.5) * width
        body.append(
            f'<text class="col" transform="translate({x:.0f},{top - 6}) rotate(-40)">{escape(_short(name, 16))}</text>'
        )
    for n, row in enumerate(rows):
        y = top + n * cell
        body.append(f'<text class="row" x="{left - 6}" y="{y + cell * 0.62:.0f}">{escape(_short(row, 16))}</text>')
        for k, column in enumerate(columns):
            value = values.get((row, column), 0.0)
            share = (value / most) ** 0.5 if value > 0 else 0.0
            tip = f"<title>{escape(row)} waits for {escape(column)}: {escape(show(value))}</title>"
            place = f'x="{left + k * width:.1f}" y="{y}" width="{width - 2:.1f}" height="{cell - 2}"'
            body.append(
                f'<rect class="field" {place}/><rect class="heat" {place} fill-opacity="{share:.3f}">{tip}</rect>'
            )
            if value > 0 and width >= 50:  # where there is no room: the tip, and the table
                light = " light" if share > 0.55 else ""
                middle = f'x="{left + (k + 0.5) * width - 1:.1f}" y="{y + cell * 0.62:.0f}"'
                body.append(f'<text class="cell{light}" {middle}>{escape(show(value))}</text>')
    return _figure(title, "".join(body), [], top + len(rows) * cell + 10)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _x(axis: Axis, value: float) -> float:
    return round(_LEFT + axis.part(value) * (WIDTH - _LEFT - _RIGHT), 1)


def _y(axis: Axis, value: float) -> float:
    return round(HEIGHT - _BOTTOM - axis.part(value) * (HEIGHT - _TOP - _BOTTOM), 1)


def _frame(x: Axis, y: Axis) -> str:
    out = []
    right, floor_ = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for tick in y.ticks():
        at = _y(y, tick)
        out.append(f'<line class="grid" x1="{_LEFT}" y1="{at}" x2="{right}" y2="{at}"/>')
        out.append(f'<text class="tick y" x="{_LEFT - 6}" y="{at + 4}">{escape(y.text(tick))}</text>')
    for tick in x.ticks():
        out.append(f'<text class="tick x" x="{_x(x, tick)}" y="{floor_ + 15}">{escape(x.text(tick))}</text>')
    out.append(f'<line class="base" x1="{_LEFT}" y1="{floor_}" x2="{right}" y2="{floor_}"/>')
    out.append(f'<text class="axis" x="{right}" y="{HEIGHT - 6}" text-anchor="end">{escape(x.label)}</text>')
    out.append(f'<text class="axis" x="{_LEFT}" y="{_TOP - 8}">{escape(y.label)}</text>')
    return "".join(out)


def _figure(title: str, body: str, legend: Sequence[tuple[str, int, str]], height: float = HEIGHT) -> str:
    keys = ""
    for name, colour, style in legend:
        sign = f"p{colour % 10}" if style == "part" else f"c{colour % COLOURS}"
        keys += f'<span class="key"><i class="{sign} {style}"></i>{escape(name)}</span>'
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(title, quote=True)}">{body}</svg><div class="legend">{keys}</div></figure>'
    )


def table(columns: Sequence[tuple[str, str]], rows: Sequence[dict[str, Any]], show: Callable[[str, Any], str]) -> str:
    """(field, heading) of each column. Wide ones scroll inside the page."""
    head = "".join(f"<th>{escape(heading)}</th>" for _, heading in columns)
    body = []
    for row in rows:
        cells = []
        for field, _ in columns:
            value = row.get(field)
            kind = ' class="n"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
            cells.append(f"<td{kind}>{escape(show(field, value))}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
