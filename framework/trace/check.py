"""Do the records of a run fit together? Asked before a verdict, so that a damaged trace is no traceback and no verdict.

This judges the files, not the protocol: names that nobody declared, identifiers that are none, a receipt of what was
never sent from there, files of different runs. What can be a fault of the protocol stays for the oracle.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from framework.errors import BadTrace
from framework.trace.files import Trace, read
from framework.trace.record import Header, Record, is_unwritten, parse_ticket

_INVOCATION = re.compile(r"[^/\s]{1,200}/\d{1,18}(\.\d{1,18}){0,200}\Z", re.ASCII)
_SID = re.compile(r"\d{1,18}:[^@:\s]+@[^@:\s]+\Z", re.ASCII)
_AT_A_REPLICA = ("arrive", "propose", "agree", "deliver", "duplicate", "end", "snapshot", "adopt", "state")
_OF_A_GROUP = ("send", "arrive", "propose", "agree", "deliver", "duplicate", "receive")
_WAYS = ("", "fast", "slow", "none")


def load(paths: Sequence[Path], reading: Callable[[Path], Trace] = read) -> list[Trace]:
    """The traces of one run, or BadTrace that names file, line and what is wrong."""
    traces = [reading(path) for path in paths]
    check(list(zip(paths, traces, strict=True)))
    return traces


def check(run: Sequence[tuple[Path, Trace]]) -> None:
    _headers(run)
    lives = {(trace.header.node, trace.header.life): trace for _, trace in run}
    nodes = {n for _, trace in run for n in _named(trace)}
    sent: dict[str, str] = {}  # group: where it was sent
    for path, trace in run:
        for fault in _placement_faults(trace.header, nodes):
            raise BadTrace(f"{path}:1: {fault}")
        for number, fault in _faults(trace, sent, path, lives):
            raise BadTrace(f"{path}:{number}: {fault}")


def _headers(run: Sequence[tuple[Path, Trace]]) -> None:
    writers: dict[tuple[str, int], Path] = {}
    first_path, first = run[0]
    for path, trace in run:
        head = trace.header
        for fault in _header_faults(head):
            raise BadTrace(f"{path}:1: {fault}")
        if (head.node, head.life) in writers:
            life = "" if head.life == 1 else f" since view {head.life}"
            raise BadTrace(
                f"{path}:1: a second trace of {head.node}{life}; the first is {writers[head.node, head.life]}"
            )
        writers[head.node, head.life] = path
        if head.objects != first.header.objects:
            names = sorted(_differing(head, first.header))
            raise BadTrace(
                f"{path}:1: says otherwise than {first_path} about {', '.join(names)}: traces of different runs?"
            )
    for path, trace in run:
        # one that joined later may have died before it wrote anything
        beginners = [n for n, since in zip(trace.header.members, _since(trace.header), strict=True) if since == 1]
        missing = [n for n in beginners if (n, 1) not in writers]
        if missing:
            raise BadTrace(
                f"{path}:1: {missing[0]} is a member, but its trace is not here: give all files of the run together"
            )


def _since(told: Header | Record) -> tuple[int, ...]:
    return told.since or (1,) * len(told.members)


def _named(trace: Trace) -> Iterator[str]:
    """All nodes that a trace says are or were members."""
    yield from trace.header.members
    for r in trace.records:
        if r.event == "install":
            yield from r.members


def _differing(a: Header, b: Header) -> set[str]:
    return {name for name in {*a.objects, *b.objects} if a.objects.get(name) != b.objects.get(name)}


def _header_faults(head: Header) -> Iterator[str]:
    if head.node not in head.members:
        yield f"{head.node!r} is not among the members {', '.join(head.members)}"
    yield from _view_faults(head, head.view)
    if head.node in head.members and len(head.members) == len(_since(head)):
        life = _since(head)[head.members.index(head.node)]
        if life != head.life:
            yield f"the life of {head.node} began with view {head.life}, but since says {life}"


def _view_faults(told: Header | Record, version: int) -> Iterator[str]:
    if len(set(told.members)) != len(told.members):
        yield "a member is named twice"
    if len(_since(told)) != len(told.members):
        yield f"{len(told.members)} members, but since has {len(told.since)} numbers"
    for node, since in zip(told.members, _since(told), strict=False):
        if not 1 <= since <= version:
            yield f"{node} is a member of view {version} since view {since}"


def _placement_faults(head: Header, nodes: set[str]) -> Iterator[str]:
    for name, placed in head.objects.items():
        for replica in placed.replicas:
            if replica.partition("@")[0] != name or replica.partition("@")[2] not in nodes:
                yield f"object {name!r} has the replica {replica!r}; expected {name}@ and a member"
        if len(set(placed.replicas)) != len(placed.replicas):
            yield f"object {name!r} names a replica twice"


def _faults(
    trace: Trace, sent: dict[str, str], path: Path, lives: Mapping[tuple[str, int], Trace]
) -> Iterator[tuple[int, str]]:
    """(line, what is wrong) of the records of one file."""
    here: dict[str, Record] = {}  # groups sent from this node
    replicas = {r for placed in trace.header.objects.values() for r in placed.replicas}
    for number, r in enumerate(trace.records, 2):
        for fault in _fields(r, replicas):
            yield number, f"{r.event}: {fault}"
        if r.event == "send":
            for fault in _send(r, trace.header, replicas):
                yield number, f"send of {r.group}: {fault}"
            if r.group in sent:
                yield number, f"send of {r.group}: the same group was sent before, at {sent[r.group]}"
            sent[r.group] = f"{path}:{number}"
            here[r.group] = r
        elif r.event == "receive":
            for fault in _receive(r, here.get(r.group)):
                yield number, f"receive of {r.group}: {fault}"
        elif r.event == "install":
            for fault in _view_faults(r, r.view) if r.members else ("no members",):
                yield number, f"install of view {r.view}: {fault}"
        elif r.event == "adopt" and r.ticket:
            for fault in _adopt(r, trace.header.life, lives):
                yield number, f"adopt: {fault}"


def _fields(r: Record, replicas: set[str]) -> Iterator[str]:
    if r.event in _AT_A_REPLICA:
        if r.replica not in replicas:
            yield f"no replica {r.replica!r} in the header"
        elif r.replica.partition("@")[2] != r.node:
            yield f"replica {r.replica} is not on {r.node}"
    if r.event in _OF_A_GROUP and not _is_group(r.group):
        yield f"group {r.group!r} is no group id such as 12:bank@n1:0"
    if r.event in ("arrive", "deliver", "duplicate", "end") and not _INVOCATION.match(r.invocation):
        yield f"invocation {r.invocation!r} is no invocation id such as ann/3.1"
    if r.event in ("deliver", "end", "receive") and not _SID.match(r.sid):
        yield f"sid {r.sid!r} is no start identifier such as 12:bank@n1"
    if r.event == "deliver" and r.footprint is None:
        yield "the footprint is missing"
    if r.way not in _WAYS:
        yield f"way {r.way!r}; expected fast, slow or none"


def _send(r: Record, head: Header, replicas: set[str]) -> Iterator[str]:
    if not _INVOCATION.match(r.invocation):
        yield f"invocation {r.invocation!r} is no invocation id such as ann/3.1"
    if r.group != f"{r.sid}:{r.no}":
        yield f"the group id does not consist of sid {r.sid!r} and no {r.no}"
    if r.sid.partition("@")[2] != r.node:
        yield f"sid {r.sid} is not of {r.node}"
    names = [name for name, _ in r.parts]
    if not names or len(set(names)) != len(names):
        yield f"the parts name {', '.join(names) or 'no object'}; expected each object once"
    for name in names:
        if name not in head.objects:
            yield f"no object {name!r} in the header"
    dests = [replica for replica, _ in r.dests]
    for replica in dests:
        if replica not in replicas or replica.partition("@")[0] not in names:
            yield f"destination {replica!r} is no replica of {', '.join(names)}"
    if len(set(dests)) != len(dests) or {d.partition("@")[0] for d in dests} != set(names):
        yield f"the destinations {', '.join(dests)} do not fit the parts {', '.join(names)}"


def _receive(r: Record, send: Record | None) -> Iterator[str]:
    if send is None:
        yield f"{r.node} did not send it before"
        return
    if send.sid != r.sid:
        yield f"{r.sid} receives, but {send.sid} sent it"
    dests = {replica for replica, _ in send.dests}
    for replica, _ in r.received:
        if replica not in dests:
            yield f"a response from {replica!r}, which is no destination"


def _adopt(r: Record, life: int, lives: Mapping[tuple[str, int], Trace]) -> Iterator[str]:
    """The state is that of a snapshot, or what a life of this or another replica held when it was over."""
    if is_unwritten(r.ticket):
        return
    try:
        replica, since, i = parse_ticket(r.ticket)
    except ValueError as e:
        yield str(e)
        return
    if replica.partition("@")[0] != r.replica.partition("@")[0]:
        yield f"{r.replica} has taken the state of {replica}"
    if replica == r.replica and since >= life:
        yield f"the ticket {r.ticket} is of this life or a later one"
    donor = lives.get((replica.partition("@")[2], since))
    if donor is None or replica == r.replica or i > len(donor.records):
        return  # what a donor that died did not write
    taken = donor.records[i - 1] if i else None
    snapshot = taken is not None and (taken.event, taken.replica) == ("snapshot", replica)
    if not snapshot and (not donor.records or donor.records[-1].event == "stop"):
        yield f"the ticket {r.ticket} is not of a snapshot of {replica}, nor of a life that was over"


def _is_group(text: str) -> bool:
    sid, _, no = text.rpartition(":")
    return bool(_SID.match(sid)) and no.isascii() and no.isdecimal() and len(no) <= 18
