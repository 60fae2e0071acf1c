"""The states of a node (framework.com.states) as an SVG picture: five boxes, an arrow for each pair of states, and
below what leads from one to the next. docs/membership.svg is this; ``write`` makes it anew."""

from collections.abc import Iterator
from math import cos, hypot, pi, sin
from pathlib import Path

from framework.com.states import CHANGING, ISOLATED, MEANING, OUT, OUTSIDER, STEADY, TABLE, State
from framework.sim.svg import text

_ROUND: tuple[State, ...] = (STEADY, CHANGING, ISOLATED, OUT, OUTSIDER)  # clockwise, from the top
_CENTRE, _RADIUS = (430.0, 250.0), 185.0
_HALF_WIDE, _HALF_HIGH = 58.0, 20.0
_BEND = 26.0  # how far an arrow leaves the straight line: there and back do not meet
_WIDE, _LEGEND, _LINE = 860, 490.0, 34.0
_FILL = {OUTSIDER: "#eef2f7", STEADY: "#e3f3e6", CHANGING: "#fff3d6", ISOLATED: "#fde4de", OUT: "#e6e6e6"}
_STYLE = """
text{font-family:ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#222}
.t{font-size:18px;font-weight:600}.n{font-size:14px;font-weight:700;text-anchor:middle}
.m{font-size:12px;font-weight:700;text-anchor:middle}.e{font-size:12px;font-weight:600}.s{font-size:11.5px;fill:#555}
path{stroke:#56616d;fill:none;stroke-width:1.4}
"""
Point = tuple[float, float]


def write(path: Path | str) -> None:
    Path(path).write_text(draw(), encoding="utf-8")


def draw() -> str:
    """The picture as the text of an SVG file; the same text for the same table."""
    return "\n".join(_parts()) + "\n"


def _parts() -> Iterator[str]:
    high = _LEGEND + _LINE * len(TABLE) + 20
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{high:.0f}" '
        f'viewBox="0 0 {_WIDE} {high:.0f}" role="img" aria-label="The states of a node">'
    )
    yield f"<title>The states of a node</title><style>{_STYLE}</style>"
    yield (
        '<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 10 5 0 10z" style="fill:#56616d;stroke:none"/></marker></defs>'
    )
    yield f'<rect width="{_WIDE}" height="{high:.0f}" fill="#fff"/>'
    yield text(24, 34, "The states of a node", "t")
    for pair, numbers in _arrows().items():
        yield from _arrow(*pair, ", ".join(map(str, numbers)))
    for state in _ROUND:
        x, y = _place(state)
        yield (
            f'<rect x="{x - _HALF_WIDE:.1f}" y="{y - _HALF_HIGH:.1f}" width="{2 * _HALF_WIDE:.0f}" '
            f'height="{2 * _HALF_HIGH:.0f}" rx="8" fill="{_FILL[state]}" stroke="#56616d">'
            f"<title>{MEANING[state]}</title></rect>"
        )
        yield text(x, y + 5, state, "n")
    for number, row in enumerate(TABLE, 1):
        y = _LEGEND + _LINE * (number - 1)
        yield text(40, y, str(number), "m")
        yield text(60, y, f"{row.state} → {row.next}: {row.event}", "e")
        yield text(60, y + 15, row.what, "s")
    yield "</svg>"


def _arrows() -> dict[tuple[State, State], list[int]]:
    out: dict[tuple[State, State], list[int]] = {}
    for number, row in enumerate(TABLE, 1):
        out.setdefault((row.state, row.next), []).append(number)
    return out


def _place(state: State) -> Point:
    angle = 2 * pi * _ROUND.index(state) / len(_ROUND) - pi / 2
    return _CENTRE[0] + 1.4 * _RADIUS * cos(angle), _CENTRE[1] + _RADIUS * sin(angle)


def _arrow(start: State, end: State, label: str) -> Iterator[str]:
    a, b = _place(start), _place(end)
    if start == end:
        x, y = a[0] + _HALF_WIDE, a[1]
        loop = f"M{x:.1f} {y - 12:.1f}c50 -22 50 46 0 24"
        yield f'<path d="{loop}" marker-end="url(#a)"/>'
        yield from _label((x + 38, y), label)
        return
    length = hypot(b[0] - a[0], b[1] - a[1])
    middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    across = ((b[1] - a[1]) / length, -(b[0] - a[0]) / length)
    bend = (middle[0] + 2 * _BEND * across[0], middle[1] + 2 * _BEND * across[1])
    p, q = _edge(a, bend), _edge(b, bend)
    yield f'<path d="M{p[0]:.1f} {p[1]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {q[0]:.1f} {q[1]:.1f}" marker-end="url(#a)"/>'
    yield from _label((p[0] / 4 + bend[0] / 2 + q[0] / 4, p[1] / 4 + bend[1] / 2 + q[1] / 4), label)


def _edge(centre: Point, towards: Point) -> Point:
    """Where a line from the middle of a box leaves it."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    share = min(_HALF_WIDE / abs(dx) if dx else 9e9, _HALF_HIGH / abs(dy) if dy else 9e9)
    return centre[0] + share * dx, centre[1] + share * dy


def _label(at: Point, words: str) -> Iterator[str]:
    wide = 10.0 + 7.0 * len(words)
    yield f'<rect x="{at[0] - wide / 2:.1f}" y="{at[1] - 10:.1f}" width="{wide:.0f}" height="19" rx="9" fill="#fff"/>'
    yield text(at[0], at[1] + 4, words, "m")
