"""What people and tools see of a node: its objects and what they can do; how the node is, what waits and why.

Plain data, for ``obo ls``, ``obo describe``, ``obo status`` and the gateway alike.
"""

import inspect
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from framework.com.core import Com
from framework.com.entry import Entry
from framework.com.host import Host
from framework.com.link import Link
from framework.com.tran import known
from framework.declare import Declaration, Method
from framework.declare.signature import Parameter
from framework.ids import Node as NodeName
from framework.ids import node_of
from framework.net.line import Line
from framework.orb.config import Config
from framework.orb.facts import calls
from framework.orb.garbage import memory

if TYPE_CHECKING:
    from framework.orb.life import Life
    from framework.orb.node import Node

When = Literal["always", "keys meet", "never"]
Stage = Literal["announced", "held", "proposed", "agreed"]

MOST = 100  # instances and calls that are told one by one
MOST_WAITING = 20  # requests of which is told why they wait: to find out takes time, and nothing else goes on

_started = time.monotonic()


# objects


def objects(config: Config) -> list[dict[str, Any]]:
    return [described(config, name) for name in sorted(config.declarations)]


def described(config: Config, name: str) -> dict[str, Any]:
    """One object: its class, where it lives, its methods with their types, which of them conflict."""
    placement = config.directory.find(name)
    declared = config.declarations[placement.name]
    about = {
        "name": name,
        "class": f"{declared.cls.__module__}:{declared.cls.__qualname__}",
        "replicas": list(placement.replicas),
        "nodes": {node_of(r): config.addresses[node_of(r)] for r in placement.replicas},
        "methods": sorted(declared.methods),
    }
    return about | _class(declared)


def when(declared: Declaration, a: str, b: str) -> When:
    """When do calls of the two methods conflict?"""
    if not declared.relation.methods(a, b):
        return "never"
    return "keys meet" if declared.methods[a].keyed and declared.methods[b].keyed else "always"


@lru_cache(1024)
def _class(declared: Declaration) -> dict[str, Any]:
    names = list(declared.methods)
    pairs = [(a, b, when(declared, a, b)) for i, a in enumerate(names) for b in names[i:]]
    return {
        "doc": _first_line(declared.cls),
        "signatures": [_signature(declared, m) for m in declared.methods.values()],
        "conflicts": [{"first": a, "second": b, "when": w} for a, b, w in pairs if w != "never"],
    }


def _signature(declared: Declaration, method: Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "doc": _first_line(getattr(declared.cls, method.name)),
        "parameters": [_parameter(p) for p in method.parameters],
        "returns": Parameter("", method.result).type_name if method.returns_value else "None",
        "returns_schema": _schema(method.result),
        "readonly": method.readonly,
        "async": method.is_async,
        "key": method.key,
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    about = {
        "name": parameter.name,
        "type": parameter.type_name,
        "schema": _schema(parameter.type),
        "required": parameter.required,
    }
    if not parameter.required:
        about["default"] = msgspec.json.encode(parameter.default).decode()
    return about


def _schema(annotation: Any) -> str:
    """As JSON Schema, for those who do not know Python's types; empty where it has no words for a type."""
    try:
        return msgspec.json.encode(msgspec.json.schema(annotation)).decode()
    except TypeError:
        return ""


def _first_line(documented: Any) -> str:
    own = documented.__doc__ if isinstance(documented, type) else inspect.getdoc(documented)
    return (own or "").strip().partition("\n")[0]


# how a node is


def told(node: "Node") -> dict[str, Any]:
    """How a node is, member or not, and why it is not well."""
    life, lines = node.member, node.peers.lines
    found = status(life, lines) if life is not None else outside(node.name, lines, node.version)
    found["group"]["why"] = node.unwell()
    found["kept"] = node.stores.keep.told()
    return found


def status(life: "Life", lines: Mapping[NodeName, Line]) -> dict[str, Any]:
    com = life.com
    running = Counter(i.sid.replica for i in com.instances.values())
    waiting = ((host, entry) for host in com.hosts.values() for entry in host.order.entries.values() if _waits(entry))
    performed = {r: {"performed": s.performed, "convoys": s.convoys} for r, s in life.residents.items()}
    nothing = {"performed": 0, "convoys": 0}
    stages = {r: _stages(host) for r, host in com.hosts.items()}
    return {
        "node": com.node,
        "view": com.view,
        "members": list(com.lives.view.members),
        "group": _group(life),
        "transfers": life.handing.status(),
        "clock": com.clock,
        "links": {peer: _link(line, com.links.get(peer)) for peer, line in lines.items()},
        "replicas": {
            r: {**stages[r], "running": running[r], **performed.get(r, nothing), **_past(host)}
            for r, host in com.hosts.items()
        },
        "waiting": [_why(host, entry) for host, entry in islice(waiting, MOST_WAITING)],
        "waiting_in_all": sum(sum(counts.values()) for counts in stages.values()),
        "running": [{"replica": i.sid.replica, "call": calls(i.entry)} for i in islice(com.instances.values(), MOST)],
        "calls": list(islice(_calls(com), MOST)),
        "transactions": _transactions(com, life.now()),
        "process": process(),
    }


def _transactions(com: Com, now: float) -> list[dict[str, Any]]:
    """Those that are not over, as far as this node has something of them or they wait here."""
    there, waits = known(com.trans), dict[str, list[str]]()
    for edge in com.trans.deadlock.edges() if there else ():  # to look for edges takes time
        waits.setdefault(str(edge.waiter), []).append(f"{edge.holder} at {edge.text}")
    return [
        {
            "name": str(name),
            "state": how,
            "held_for": round(com.trans.held_for(name, now), 2),
            "holds": [f"{k.host.replica} {k.instance.entry.footprint}" for k in com.trans.held.get(name, [])[:MOST]],
            "waits_for": waits.get(str(name), []),
        }
        for name, how in islice(there.items(), MOST)
    ]


def outside(node: NodeName, lines: Mapping[NodeName, Line], version: int) -> dict[str, Any]:
    """The same of a node that is not a member."""
    return {
        "node": node,
        "view": version,
        "members": [],
        "group": {"state": "outsider", "members": {}, "suspected": {}, "leaving": []},
        "transfers": {"unready": {}, "fetching": [], "adopting": [], "giving": [], "refused": {}, "found": {}},
        "clock": 0,
        "links": {peer: _link(line, None) for peer, line in lines.items()},
        "replicas": {},
        "waiting": [],
        "waiting_in_all": 0,
        "running": [],
        "calls": [],
        "transactions": [],
        "process": process(),
    }


def _group(life: "Life") -> dict[str, Any]:
    """The view, and how this node sees the others: members with their lives, silent ones with seconds of silence."""
    com = life.com
    view, member = com.lives.view, com.member
    now = life.now()
    return {
        "state": member.state,
        "members": {n: view.life(n) for n in view.members},
        "suspected": {n: round(member.detector.silence(n, now), 2) for n in sorted(member.suspects)},
        "leaving": sorted(member.unwanted),
    }


def process() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "uptime": round(time.monotonic() - _started, 1),
        "rss": memory(),
        "threads": threading.active_count(),
    }


def _link(line: Line, link: Link | None) -> dict[str, Any]:
    """``link`` None: they are not both members."""
    waiting = {"queued": link.queued, "unacked": link.unacked} if link is not None else {"queued": 0, "unacked": 0}
    return {"up": line.up, "lost": line.lost, "member": link is not None, **waiting}


def _stages(host: Host) -> dict[str, int]:
    """Looked through once: at a replica that waits for its state there are many of them, and nothing else goes on."""
    stages: dict[str, int] = dict.fromkeys(("announced", "held", "proposed", "agreed"), 0)
    for entry in host.order.entries.values():
        if _waits(entry):
            stages[_stage(entry)] += 1
    return stages


def _past(host: Host) -> dict[str, int]:
    return {"begun": host.order.begun, "waited": host.order.waited, "kept": len(host.kept)}


def _waits(entry: Entry) -> bool:
    return not (entry.started or entry.void)


def _stage(entry: Entry) -> Stage:
    """As framework.com.order names them."""
    if entry.request is None:
        return "announced"
    if entry.proposal is None:
        return "held"
    return "agreed" if entry.safe else "proposed"


def _why(host: Host, entry: Entry) -> dict[str, str]:
    return {
        "replica": host.replica,
        "request": str(entry.footprint),
        "call": calls(entry),
        "stage": _stage(entry),
        "why": str(host.order.blockers(entry)),
    }


def _calls(com: Com) -> Iterator[dict[str, Any]]:
    """Receipts that are not complete: of clients and of instances."""
    for caller in com.calls.callers.values():
        for call in caller.calls.values():
            if call.receipt is not None:
                missing = sorted(set(call.dests) - set(call.got))
                who = caller.client or str(caller.invocation)
                yield {"by": who, "number": call.number, "receipt": str(call.receipt), "missing": missing}
