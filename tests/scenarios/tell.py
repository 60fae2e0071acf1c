"""A conversation in words: one line for each thing that happens, frames with what they carry."""

from typing import Any

from framework.com.events import Accepted, Deliver, Received, Transmit, Wake
from framework.com.messages import (
    Announce,
    Delivered,
    Dest,
    Frame,
    Known,
    Mark,
    Part,
    Proposal,
    Request,
    Response,
    WireContext,
)
from framework.com.telling import Agreed, Dropped, Duplicate, Ended, Landed, Proposed, Sent
from framework.ids import Node


def context(wire: WireContext) -> str:
    """``{file@n2: n1#3 n2#1}``: at file@n2, the third request of n1 and the first of n2 come first."""
    return "{" + ", ".join(f"{at}: {marks(here)}" for at, here in wire) + "}"


def marks(here: tuple[Mark, ...]) -> str:
    return " ".join(f"{origin}#{seq}" for origin, seq in here)


def dests(to: tuple[Dest, ...]) -> str:
    return " ".join(f"{d.replica}#{d.seq}" for d in to)


def parts(of: tuple[Part, ...]) -> str:
    return " ".join(f"{p.object}.{p.footprint}" for p in of)


# messages


def _request(m: Request) -> str:
    chain = "".join(f", called by {a.object}" for a in m.chain)
    extra = f", 1 of {m.copies} copies" if m.copies > 1 else ""
    order = f"number {m.number}" if m.ordered else f"number {m.number}, no agreement"
    head = f"request {m.group} = {m.invocation} {m.kind} at {m.target}"
    return f"{head}, {order}, context {context(m.context)}{chain}{extra}"


def _proposal(m: Proposal) -> str:
    announce: Announce | None = m.announce
    text = f"proposal {m.number} of {m.replica} for {m.group}"
    if announce is None:
        return text
    return f"{text}, announcing number {announce.number} {parts(announce.parts)} to {dests(announce.dests)}"


def _known(m: Known) -> str:
    return f"known at {m.replica}: the stamp of {m.group}"


def _response(m: Response) -> str:
    extra = "" if m.settled else ", from its reply"
    joins = f", joined by {context(m.joins)}" if m.joins else ""
    body = f" {m.body.decode()!r}" if m.body else ""
    return f"response {m.status}{body} of {m.replica} to {m.group}, context {context(m.context)}{joins}{extra}"


def _delivered(m: Delivered) -> str:
    ranges = (f"{at} {origin}#{first}..{last}" for at, origin, some in m.marks for first, last in some)
    return "delivered " + ", ".join(ranges)


# what nodes do


def _sent(e: Sent) -> str:
    what = f"{e.transmission} {parts(e.parts)} to {dests(e.dests)}"
    return f"{e.client or e.caller} sends {e.group} = {e.invocation}, {what}"


def _received(e: Received) -> str:
    who = e.client or e.caller
    got = " ".join(f"{r.replica}={r.status}" + (f":{r.body.decode()}" if r.body else "") for r in e.responses)
    text = f"{who} receives {e.group} by {e.receipt}: {got or 'nothing'}"
    return text if e.complete else f"{text}, incomplete"


def _agreed(e: Agreed) -> str:
    if e.way == "none":
        return f"{e.replica} gives {e.group} the place {e.stamp.number}"
    return f"{e.replica} is sure of {e.stamp.number} for {e.group}, {e.way}"


def _deliver(e: Deliver) -> str:
    way = "without agreement" if e.way == "none" else f"with stamp {e.stamp.number}, {e.way}"
    return f"{e.replica} delivers {e.request.invocation} {e.footprint} as {e.sid}, cid {e.cid}, {way}"


_WORDS: dict[type[Any], Any] = {
    Request: _request,
    Proposal: _proposal,
    Known: _known,
    Response: _response,
    Delivered: _delivered,
    Sent: _sent,
    Received: _received,
    Deliver: _deliver,
    Landed: lambda e: f"{e.replica} has {e.group}",
    Proposed: lambda e: f"{e.replica} proposes {e.stamp.number} for {e.group}",
    Agreed: _agreed,
    Ended: lambda e: f"{e.replica} {'commits' if e.committed else 'aborts'} {e.invocation}, {e.sid}",
    Duplicate: lambda e: f"{e.replica} takes {e.group} for a copy of {e.invocation}",
    Dropped: lambda e: f"drops what {e.peer} sent: {e.why}",
}
_SILENT = (Accepted, Wake, Transmit)


def frame(target: Node, f: Frame, held: bool = False) -> list[str]:
    """``n1 -> n2 #3 ack 2``; frames without a number carry no messages."""
    number = f"#{f.number}" if f.number else "empty"
    ask = f" ask {f.ask}" if f.ask else ""
    head = f"{f.source} -> {target} {number} ack {f.ack}{ask} clock {f.clock}"
    if held:
        return [f"{head}, held"]
    return [head, *(f"    {_WORDS[type(m)](m)}" for m in f.messages)]


def effect(node: Node, e: Any) -> list[str]:
    return [] if isinstance(e, _SILENT) else [f"  {node}: {_WORDS[type(e)](e)}"]
