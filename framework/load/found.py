"""What a cluster has: objects, where their replicas are, which methods only read. Asked before calls are drawn."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from framework.errors import BadRequest, NoSuchMethod, NoSuchObject


class Thing(msgspec.Struct, frozen=True):
    """An object of the cluster."""

    name: str
    cls: str  # module:Class
    replicas: tuple[str, ...]
    methods: dict[str, tuple[bool, bool]]  # name: does it only read, does it return something


class Found(msgspec.Struct, frozen=True):
    things: dict[str, Thing]
    nodes: dict[str, str]  # name: address

    @classmethod
    def told(cls, objects: Iterable[Mapping[str, Any]]) -> "Found":
        """From what ``look("objects")`` says."""
        things: dict[str, Thing] = {}
        nodes: dict[str, str] = {}
        for o in objects:
            methods = {s["name"]: (bool(s["readonly"]), s["returns"] != "None") for s in o["signatures"]}
            things[o["name"]] = Thing(o["name"], o["class"], tuple(o["replicas"]), methods)
            nodes |= o["nodes"]
        return cls(things, dict(sorted(nodes.items())))

    def together(self, cls: str) -> list[str]:
        """Objects of a class that have several replicas; in a cluster of one node, all."""
        mine = [t for t in self.things.values() if t.cls == cls]
        return sorted(t.name for t in mine if len(t.replicas) > 1 or len(self.nodes) == 1)

    def alone(self, cls: str) -> list[str]:
        """Objects of a class with one replica: what changes them may go by ucast."""
        return sorted(t.name for t in self.things.values() if t.cls == cls and len(t.replicas) == 1)

    def need(self, cls: str, workload: str) -> list[str]:
        found = self.together(cls) or self.alone(cls)
        if not found:
            others = ", ".join(sorted({t.cls for t in self.things.values()})) or "none"
            raise BadRequest(f"{workload}: the cluster has no object of {cls}; it has those of {others}")
        return found

    def method(self, name: str, method: str) -> tuple[bool, bool]:
        thing = self.things.get(name)
        if thing is None:
            raise NoSuchObject(f"no object {name!r}; the cluster has {', '.join(sorted(self.things)) or 'none'}")
        if method not in thing.methods:
            raise NoSuchMethod(f"{name} has no method {method!r}; it has {', '.join(sorted(thing.methods))}")
        return thing.methods[method]

    def transmission(self, way: str, parts: Sequence[tuple[str, str]]) -> str:
        """How an act goes: as it says, or as the node will choose (framework/orb/naming.py)."""
        if way or len(parts) > 1:
            return way or "pcast"
        name, method = parts[0]
        one = self.method(name, method)[0] or len(self.things[name].replicas) == 1
        return "ucast" if one else "mcast"

    def receipt(self, transmission: str, parts: Sequence[tuple[str, str]]) -> str:
        """What the node takes if nothing is said."""
        if len(parts) > 1:
            return "crec"
        count = len(self.things[parts[0][0]].replicas)
        return "srec" if transmission == "ucast" or count == 1 else f"quorum({count // 2 + 1})"
