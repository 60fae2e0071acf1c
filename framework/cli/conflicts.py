"""``obo conflicts objects.bank:Bank``: the conflict matrix of a class as a table."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from framework.cli import matrix
from framework.declare import Declaration, declaration
from framework.orb.load import load_class
from framework.orb.looking import when


def run(
    target: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="for example objects.bank:Bank")],
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show which methods of a class conflict, and where keys narrow it."""
    declared = declaration(load_class(target))
    told = described(target, declared)
    if as_json:
        typer.echo(json.dumps(told, indent=2))
        return
    console = Console()
    if not console.is_terminal:
        console.width = 1000  # a file has no edge: never cut a name
    matrix.show(console, declared.name, told["methods"], told["conflicts"])


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
