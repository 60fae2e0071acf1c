"""``obo conflicts objects.bank:Bank``: the conflict matrix of a class as a table."""

import json
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from framework.declare import Declaration, declaration
from framework.orb.load import load_class

When = Literal["always", "keys meet", "never"]

_SIGNS: dict[When, str] = {"always": "●", "keys meet": "◐", "never": "·"}
_PLAIN: dict[When, str] = {"always": "X", "keys meet": "k", "never": "."}


def run(
    target: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="for example objects.bank:Bank")],
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show which methods of a class conflict, and where keys narrow it."""
    declared = declaration(load_class(target))
    if as_json:
        typer.echo(json.dumps(described(target, declared), indent=2))
        return
    console = Console()
    if not console.is_terminal:
        console.width = 1000  # a file has no edge: never cut a name
    signs = _SIGNS if console.encoding.startswith("utf") else _PLAIN
    console.print(_table(declared, signs))
    console.print(_legend(declared, signs), markup=False)


def when(declared: Declaration, a: str, b: str) -> When:
    """When do calls of the two methods conflict?"""
    if not declared.relation.methods(a, b):
        return "never"
    return "keys meet" if declared.methods[a].keyed and declared.methods[b].keyed else "always"


def described(target: str, declared: Declaration) -> dict[str, Any]:
    names = list(declared.methods)
    pairs = [(a, b, when(declared, a, b)) for i, a in enumerate(names) for b in names[i:]]
    return {
        "class": target,
        "methods": [
            {
                "name": m.name,
                "readonly": m.readonly,
                "async": m.is_async,
                "key": m.key or None,
                "parameters": [{"name": p.name, "type": p.type_name, "required": p.required} for p in m.parameters],
                "returns_value": m.returns_value,
            }
            for m in declared.methods.values()
        ],
        "conflicts": [{"first": a, "second": b, "when": w} for a, b, w in pairs if w != "never"],
    }


def _table(declared: Declaration, signs: dict[When, str]) -> Table:
    table = Table(title=declared.name, title_justify="left")
    table.add_column("method", no_wrap=True)
    for name in declared.methods:
        table.add_column(name, justify="center")
    table.add_column("key")
    for a, method in declared.methods.items():
        label = f"{a} (readonly)" if method.readonly else a
        table.add_row(label, *(signs[when(declared, a, b)] for b in declared.methods), method.key)
    return table


def _legend(declared: Declaration, signs: dict[When, str]) -> str:
    every = {when(declared, a, b) for a in declared.methods for b in declared.methods}
    words: dict[When, str] = {
        "always": "conflict: one order at all replicas",
        "keys meet": "conflict where keys meet",
        "never": "compatible: no order",
    }
    return "   ".join(f"{signs[w]} {text}" for w, text in words.items() if w in every)
