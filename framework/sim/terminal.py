"""Draws a run in a terminal: a column for each node, time downwards, one line for each thing that happens.

A column is the node's line and, right of it, a lane for each request that is there: what it waits for, then that it is
performed. Arrows are drawn where messages arrive. On the right it says in words what happened.
"""

from collections.abc import Iterator
from textwrap import wrap

import msgspec
from rich.text import Text

from framework.sim.picture import Phase, Picture, Visit
from framework.trace.record import Record

Signs = dict[str, str]
SIGNS: Signs = {
    "held": "░", "agreement": "▒", "turn": "▓", "performing": "█", "line": "│", "cut": "┊", "still": "×",
    "along": "─", "right": "▶", "left": "◀", "send": "●", "cross": "┼", "more": "+", "gap": "⋮",
    "out": "├", "back": "┤", "to": "→",
}  # fmt: skip
PLAIN: Signs = {
    "held": ".", "agreement": ":", "turn": "!", "performing": "#", "line": "|", "cut": ";", "still": "x",
    "along": "-", "right": ">", "left": "<", "send": "o", "cross": "+", "more": "+", "gap": "~",
    "out": "+", "back": "+", "to": "->",
}  # fmt: skip
STYLES = {
    "held": "yellow", "agreement": "cyan", "turn": "red", "performing": "green", "cut": "red", "still": "red",
    "right": "blue", "left": "blue", "along": "blue", "cross": "blue", "out": "blue", "back": "blue", "send": "bold",
}  # fmt: skip
_TIME = 9  # width of the column of times
_PAD = 3  # between the columns of nodes: room for the head of an arrow
_WORDS = 34  # the text keeps at least this, before lanes are left out
_GAP = 15.0  # a silence worth a line


class Happening(msgspec.Struct):
    at: float
    text: str
    source: str = ""  # node where an arrow starts, or where something is sent
    target: str = ""  # node where it ends
    style: str = ""


class Drawing:
    def __init__(self, picture: Picture, width: int, signs: Signs = SIGNS) -> None:
        self.picture = picture
        self.width = width
        self.signs = signs
        self.lanes = self._assign()
        most = max((lane + 1 for lane in self.lanes.values()), default=0)
        room = (width - _TIME - _WORDS) // max(1, len(picture.nodes)) - 1 - _PAD
        self.shown = max(1, min(most, room))
        self.column = 1 + self.shown + _PAD
        self.words = max(10, width - _TIME - self.column * len(picture.nodes))
        self.left = {node: n * self.column for n, node in enumerate(picture.nodes)}

    def _assign(self) -> dict[tuple[str, str], int]:
        """A lane for each request at a replica: the first of its node that is free while it is there."""
        free: dict[str, list[float]] = {}
        lanes = {}
        for key, visit in self.picture.visits.items():
            ends = free.setdefault(visit.node, [])
            lane = next((n for n, end in enumerate(ends) if end < visit.arrived), len(ends))
            ends[lane : lane + 1] = [visit.last(self.picture.now)]
            lanes[key] = lane
        return lanes

    # the lines

    def lines(self) -> Iterator[Text]:
        yield self._head()
        before: float | None = None
        for happening in sorted(filter(lambda h: self.picture.within(h.at), self._happenings()), key=lambda h: h.at):
            if before is not None and happening.at - before > _GAP:
                quiet = Happening((before + happening.at) / 2, f"{self.signs['gap']} {happening.at - before:.0f} later")
                yield self._line(quiet, "", quiet.text)
            first, *rest = wrap(happening.text, self.words, subsequent_indent="  ") or [""]
            yield self._line(happening, "" if happening.at == before else f"{happening.at:.1f}", first)
            for more in rest:
                yield self._line(Happening(happening.at, "", style=happening.style), "", more)
            before = happening.at

    def legend(self) -> Iterator[Text]:
        s = self.signs
        words: dict[Phase, str] = {
            "held": "held for a request before it",
            "agreement": "waits for agreement",
            "turn": "waits for a conflicting one",
            "performing": "performed",
        }
        items = [Text(s[phase] * 2, STYLES[phase]).append(f" {meaning}", "none") for phase, meaning in words.items()]
        items += [Text(f"{s['send']} sends"), Text(f"{s['along']}{s['right']} arrives")]
        if self.picture.faults:
            items += [Text(f"{s['still']} stands still", "red"), Text(f"{s['cut']} cut off or late", "red")]
        line = Text()
        for item in items:
            if line and len(line) + 3 + len(item) > self.width:
                yield line
                line = Text()
            line.append("   " if line else "").append_text(item)
        yield line

    def _head(self) -> Text:
        cells = "".join(f"{n[: self.column - 1]:<{self.column}}" for n in self.picture.nodes)
        return Text(f"{'time':>{_TIME - 2}}  {cells}", "bold")

    def _line(self, h: Happening, time: str, words: str) -> Text:
        cells = self._cells(h.at)
        if h.source and h.target and h.source != h.target:
            self._arrow(cells, h.source, h.target)
        elif h.source:
            cells[self.left[h.source]] = "send"
        line = Text(f"{time:>{_TIME - 2}}  ", no_wrap=True)
        for cell in cells:
            line.append(self.signs.get(cell, " "), STYLES.get(cell, ""))
        return line.append(words, h.style)

    def _cells(self, at: float) -> list[str]:
        """Names of signs: the lines of the nodes and what is in their lanes at this time."""
        cells = [""] * (self.column * len(self.picture.nodes))
        for node, left in self.left.items():
            cells[left] = self._node_sign(node, at)
        for key, visit in self.picture.visits.items():
            if visit.arrived <= at and at <= visit.last(self.picture.now):
                lane = min(self.lanes[key], self.shown)
                hidden = self.lanes[key] >= self.shown
                cells[self.left[visit.node] + 1 + lane] = "more" if hidden else phase_at(visit, at, self.picture.now)
        return cells

    def _node_sign(self, node: str, at: float) -> str:
        sign = "line"
        for fault in self.picture.faults:
            if node in fault.nodes and fault.start <= at <= fault.end:
                if "still" in fault.text:
                    return "still"
                sign = "cut"
        return sign

    def _arrow(self, cells: list[str], source: str, target: str) -> None:
        a, b = self.left[source], self.left[target]
        if a < b:
            span, head, sign = range(a + 1, b - 1), b - 1, "right"
        else:
            head = b + self.column - 1
            span, sign = range(head + 1, a), "left"
        for n in span:
            if cells[n] == "":
                cells[n] = "along"
            elif cells[n] == "line":
                cells[n] = "cross"
        cells[head] = sign
        cells[a] = "out" if a < b else "back"

    # what happens

    def _happenings(self) -> Iterator[Happening]:
        for fault in self.picture.faults:
            yield Happening(fault.start, f"!! {fault.text}", style="bold red")
            yield Happening(fault.end, f"!! over: {fault.text}", style="bold red")
        for send in self.picture.sends.values():
            yield self._sent(send)
        for visit in self.picture.visits.values():
            yield from self._visited(visit)
        for receipt in self.picture.receipts:
            yield self._received(receipt)

    def _sent(self, r: Record) -> Happening:
        what = ", ".join(f"{name}.{footprint}" for name, footprint in r.parts)
        to = ", ".join(replica for replica, _ in r.dests)
        return Happening(r.at, f"{r.invocation} {r.kind} {what} {self.signs['to']} {to}", source=r.node, style="bold")

    def _visited(self, v: Visit) -> Iterator[Happening]:
        send = self.picture.sends.get(v.group)
        source = send.node if send is not None else ""
        same = source == v.node
        if v.delivered == v.arrived:
            said = f"{v.replica} performs {v.label}"
        elif v.duplicate is not None:
            said = f"{v.replica} knows {v.invocation}: a copy"
        else:
            said = f"{v.replica} keeps {v.invocation}: {waiting_words(self.picture, v)}"
        yield Happening(v.arrived, said, "" if same else source, v.node)
        if v.delivered is not None and v.delivered != v.arrived:
            yield Happening(v.delivered, f"{v.replica} performs {v.label} after {v.delivered - v.arrived:.1f}")
        if v.ended is not None:
            how = "ends" if v.committed else "ABORTS"
            yield Happening(v.ended, f"{v.replica} {how} {v.invocation}", style="" if v.committed else "magenta")

    def _received(self, r: Record) -> Happening:
        send = self.picture.sends[r.group]
        nodes = [replica.partition("@")[2] for replica, _ in r.received]
        what = f"{send.client or send.sid} received {r.receipt} of {send.invocation}"
        source = nodes[-1] if nodes and nodes[-1] != r.node else ""
        return Happening(r.at, what if r.complete else f"{what}: TOO LATE", source, r.node if source else "")


def phase_at(visit: Visit, at: float, now: float) -> Phase:
    """What the request does at a time; at the moment of a change, what it does from then on."""
    found: Phase = "performing" if visit.delivered is not None and visit.delivered <= at else "held"
    for phase, start, end in visit.phases(now):
        if start <= at <= end:
            found = phase
    return found


def waiting_words(picture: Picture, visit: Visit) -> str:
    """``agreement 10.0 (fast), conflict 2.1 with c3/1``"""
    words = []
    for phase, start, end in visit.phases(picture.now):
        took = f"{end - start:.1f}"
        if phase == "held":
            words.append(f"held {took}")
        elif phase == "agreement":
            words.append(f"agreement {took}{f' ({visit.way})' if visit.way else ''}")
        elif phase == "turn":
            first = picture.went_first(visit) or picture.undecided(visit)
            words.append(f"conflict {took} with {', '.join(v.invocation for v in first[:3]) or 'others'}")
    return ", ".join(words) or "waits"


def draw(picture: Picture, title: str, width: int, signs: Signs = SIGNS) -> Iterator[Text]:
    """The lines of the picture, none longer than ``width``."""
    drawing = Drawing(picture, width, signs)
    yield Text(title, "bold")
    yield from drawing.legend()
    yield from drawing.lines()
