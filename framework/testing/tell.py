"""The words for what was found: the example, what happened, and the line to paste."""

from typing import Any

from framework.declare import Declaration
from framework.declare.base import own_rows
from framework.testing.generate import Example
from framework.testing.perform import Call, Output

Seen = tuple[Output, dict[str, Any]]


def missing(declared: Declaration, e: Example, forth: Any, back: Any) -> str:
    a, b = e.first.method.name, e.second.method.name
    declared_so = declared.relation.methods(a, b)
    why = "whose keys do not meet" if declared_so else "compatible by declaration"
    return _lines(
        f"{declared.name}.{a} and {declared.name}.{b}, {why}, can be told apart by their order:",
        ("state", _path(declared.name, e)),
        ("A", f"{e.first}"),
        ("B", f"{e.second}"),
        ("A then B", _outcome(forth)),
        ("B then A", _outcome(back)),
        ("remedy", _keys_remedy(e) if declared_so else _row(declared, a, b)),
    )


def readonly(e: Example, call: Call, before: dict[str, Any], after: dict[str, Any]) -> str:
    return _lines(
        f"{call.method.where} is readonly, but changes the state:",
        *_change(e, call, before, after),
        ("remedy", f"remove readonly=True from {call.method.name}, or the change"),
    )


def trace(e: Example, call: Call, output: Output, before: dict[str, Any], after: dict[str, Any]) -> str:
    return _lines(
        f"{call.method.where} raises, but leaves a trace in the state:",
        *_change(e, call, before, after),
        ("output", str(output)),
        ("remedy", "check first and change afterwards, so that nothing is half done"),
    )


def chance(e: Example, call: Call, one: Seen, other: Seen) -> str:
    return _lines(
        f"{call.method.where} does not do the same twice, so replicas would part:",
        ("state", _path(_class(call), e)),
        ("call", str(call)),
        ("once", f"{one[0]}, state {one[1]!r}"),
        ("again", f"{other[0]}, state {other[1]!r}"),
        ("remedy", "take chance and time from self.random(), self.uuid(), self.now(), and sort what has no order"),
    )


def unwritable(e: Example, call: Call, what: str) -> str:
    return _lines(
        f"{call.method.where} leaves a state that cannot be sent to another replica:",
        ("state", _path(_class(call), e)),
        ("call", str(call)),
        ("then", what),
        ("remedy", "keep str, int, float, bool, bytes, list, dict, dataclass or msgspec.Struct in attributes"),
    )


def needless(name: str, a: str, b: str, met: int) -> str:
    if met == 0:
        return (
            f"{name}.{a} and {name}.{b} are declared to conflict, but in no example did their keys meet: pass "
            "strategies= with fewer values"
        )
    return (
        f"{name}.{a} and {name}.{b} are declared to conflict, but none of {met} examples could tell their order: "
        "if that is so, take the pair out of the matrix"
    )


def _change(e: Example, call: Call, before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("state", _path(_class(call), e)),
        ("call", str(call)),
        ("before", repr(before)),
        ("after", repr(after)),
    ]


def _class(call: Call) -> str:
    return call.method.where.partition(".")[0]


def _path(name: str, e: Example) -> str:
    start = ", ".join(f"{key}={value!r}" for key, value in e.start.items())
    return "; ".join([f"{name}({start})", *map(str, e.history)])


def _outcome(o: Any) -> str:
    return f"A {o.first}; B {o.second}; state {o.state!r}"


def _keys_remedy(e: Example) -> str:
    keys = f"A touches {e.first.footprint}, B touches {e.second.footprint}"
    return f"{keys}: name in key= all that a call touches, or leave key= out"


def _row(declared: Declaration, a: str, b: str) -> str:
    """The line for the matrix: a row that is there already grows."""
    rows = own_rows(declared.cls) or {}
    if a not in rows and b in rows:
        a, b = b, a
    row = rows.get(a, ())
    names = [*((row,) if isinstance(row, str) else row), b]
    return f"in @conflict_matrix write {a}=({', '.join(map(repr, names))}{',' if len(names) == 1 else ''})"


def _lines(head: str, *rows: tuple[str, str]) -> str:
    return "\n".join([head, *(f"  {label:<9} {text}" for label, text in rows)])
