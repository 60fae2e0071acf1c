"""From the name that a user gives to a workload: one of ours, or a function of his own."""

from collections.abc import Callable, Mapping
from typing import Any

from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest
from framework.load.draw import Call, Draw
from framework.load.found import Found
from framework.load.workloads import (
    BankLoad,
    CounterLoad,
    FileLoad,
    OwnLoad,
    SqlInsertLoad,
    SqlLoad,
    TravelLoad,
    Workload,
)
from framework.orb.load import load_module

FIG9 = "fig9"
NAMED: dict[str, type[Workload]] = {
    "counter": CounterLoad,
    "bank": BankLoad,
    "travel": TravelLoad,
    "file": FileLoad,
    "sql": SqlLoad,
    "sql-insert": SqlInsertLoad,
}
_NONE = Found({}, {})


def check(name: str, payload: int) -> None:
    """BadRequest if there is no such workload, or it has no place for a payload."""
    if name == FIG9:
        return
    kind = NAMED.get(name)
    if kind is None:
        _function(name)
    elif payload and not kind.fills:
        fills = ", ".join(n for n, k in NAMED.items() if k.fills)
        raise BadRequest(f"{name} has no place for a payload; these have: {fills}, and functions of your own")


def make(name: str, found: Found) -> Workload:
    """For a cluster that has these objects."""
    kind = NAMED.get(name)
    return kind(name, found) if kind is not None else OwnLoad(name, found, _function(name))


class Needs:
    """The objects of a cluster that is made for a workload: class, nodes and options of each."""

    def __init__(self, name: str, nodes: list[str]) -> None:
        kind = NAMED.get(name)
        shared: Mapping[str, str] = kind.objects if kind is not None else _own_objects(name)
        single: Mapping[str, str] = kind.single if kind is not None and len(nodes) > 1 else {}
        self.objects = {**shared, **{f"{o}-{n}": cls for o, cls in single.items() for n in nodes}}
        self.on = {f"{o}-{n}": [n] for o in single for n in nodes}
        self.options: Mapping[str, Mapping[str, Any]] = kind.options if kind is not None else {}


def _own_objects(name: str) -> Mapping[str, str]:
    function = _function(name)
    found = getattr(function, "objects", None)
    if not isinstance(found, Mapping) or not found:
        word = getattr(function, "__name__", "function")
        raise BadRequest(
            f"{name}: which objects shall the nodes have? Write {word}.objects = "
            '{"bank": "objects.bank:Bank"} below it, or drive a cluster of yours with --at or --config'
        )
    return {str(o): str(cls) for o, cls in found.items()}


def _function(name: str) -> Callable[[Draw], Call]:
    module_name, colon, function_name = name.partition(":")
    if not colon:
        known = [*NAMED, FIG9]
        raise BadRequest(
            f"no workload {name!r}; {did_you_mean(name, known)}; a file ends in .toml, and a function of your own is "
            "module:function"
        )
    found = getattr(load_module(module_name), function_name, None)
    if not callable(found):
        raise BadRequest(f"{name}: module {module_name} has no function {function_name!r}")
    function: Callable[[Draw], Call] = found
    return function
