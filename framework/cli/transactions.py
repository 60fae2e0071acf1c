"""What all nodes together say of the transactions that are not over, for ``obo tran`` and ``obo status``."""

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

SHOWN = 20  # lines

#: What one node knows better than others: who is asked by a client, or performs the root.
_FAR = ("has parts here", "open", "runs", "is being decided")


def merged(up: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One for each transaction: the nodes that know of it, what is held there, for whom it waits."""
    found: dict[str, dict[str, Any]] = {}
    for node in up:
        for one in node.get("transactions", ()):  # a node of an earlier version does not speak of them
            name = one["name"]
            whole = found.setdefault(
                name, {"name": name, "state": one["state"], "held_for": 0.0, "nodes": [], "holds": [], "waits_for": []}
            )
            whole["state"] = max(whole["state"], one["state"], key=_FAR.index)
            whole["held_for"] = max(whole["held_for"], one["held_for"])
            whole["nodes"].append(node["node"])
            whole["holds"] += one["holds"]
            whole["waits_for"] += [w for w in one["waits_for"] if w not in whole["waits_for"]]
    return [found[name] for name in sorted(found)]


def table(every: Sequence[dict[str, Any]]) -> list[RenderableType]:
    """Nothing if there is none."""
    if not every:
        return []
    made = Table(
        "transaction", "state", "held for", "at", "holds", "waits for", title="Transactions", title_justify="left"
    )
    for one in every[:SHOWN]:
        state = one["state"] if one["state"] != "has parts here" else "its root is elsewhere"
        waits = "; ".join(one["waits_for"][:2]) or "-"
        made.add_row(
            Text(one["name"]), state, f"{one['held_for']:.1f} s", ", ".join(one["nodes"]), str(len(one["holds"])),
            Text(waits),
        )  # fmt: skip
    more = len(every) - SHOWN
    return [made, *([Text(f"and {more} more")] if more > 0 else [])]
