"""A conflict matrix as a table: for ``obo conflicts`` and ``obo describe``."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from framework.orb.looking import When

_SIGNS: dict[When, str] = {"always": "●", "keys meet": "◐", "never": "·"}
_PLAIN: dict[When, str] = {"always": "X", "keys meet": "k", "never": "."}
_WORDS: dict[When, str] = {
    "always": "conflict: one order at all replicas",
    "keys meet": "conflict where keys meet",
    "never": "compatible: no order",
}


def show(
    console: Console, title: str, methods: Sequence[Mapping[str, Any]], conflicts: Sequence[Mapping[str, Any]]
) -> None:
    """``methods`` have name, readonly and key; ``conflicts`` first, second and when."""
    signs = _SIGNS if console.encoding.startswith("utf") else _PLAIN
    found: dict[tuple[str, str], When] = {}
    for c in conflicts:
        found[c["first"], c["second"]] = found[c["second"], c["first"]] = c["when"]
    names = [m["name"] for m in methods]
    whens: dict[tuple[str, str], When] = {(a, b): found.get((a, b), "never") for a in names for b in names}
    table = Table(title=title, title_justify="left")
    table.add_column("method", no_wrap=True)
    for name in names:
        table.add_column(name, justify="center")
    table.add_column("key")
    for m in methods:
        a = m["name"]
        label = f"{a} (readonly)" if m["readonly"] else a
        table.add_row(label, *(signs[whens[a, b]] for b in names), m["key"] or "")
    console.print(table)
    used = set(whens.values())
    console.print("   ".join(f"{signs[w]} {text}" for w, text in _WORDS.items() if w in used), markup=False)
