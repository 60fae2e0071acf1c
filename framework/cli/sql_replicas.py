"""The replicas of a database: is each there, has it its state, how far is it, and do they hold the same."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from framework import OboError
from framework.cli.sql_where import Found
from framework.orb.client import ask_node
from framework.orb.messages import Look
from framework.orb.replaced import WORDS

if TYPE_CHECKING:
    from objects.sql.client import Digests

PATIENCE = 2.0  # seconds for a node to answer


def statuses(found: Found) -> dict[str, dict[str, Any]]:
    """What each node says of itself; ``error`` if it says nothing."""
    told: dict[str, dict[str, Any]] = {}
    for node, address in found.nodes.items():
        try:
            told[node] = ask_node(address, Look(1, "status"), PATIENCE, **found.access)
        except OboError as error:
            told[node] = {"error": str(error)}
    return told


def state_of(replica: str, status: Mapping[str, Any]) -> tuple[str, str]:
    """In words, and in which colour."""
    if "error" in status:
        return "not reached", "bold red"
    if status["group"]["state"] not in ("steady", "changing"):
        return f"no member: {status['group']['why'] or status['group']['state']}", "bold red"
    moving = status["transfers"]
    if replica not in moving["unready"]:
        return "ready", "green"
    job = next((job for job in moving["fetching"] if job["replica"] == replica), None)
    if replica in moving["adopting"]:
        return "takes its state over", "yellow"
    if replica in moving.get("comparing", ()):
        return "compares the states that are held", "yellow"
    if pause := moving.get("pausing", {}).get(replica):
        return f"waits {pause['seconds']:.0f} s before it asks for a state again: {pause['why']}", "yellow"
    if job is None:
        return "waits for a state", "yellow"
    return f"gets its state from {job['from']}, {job['bytes']:,} bytes so far", "yellow"


def refused(found: Found, told: Mapping[str, Mapping[str, Any]]) -> str:
    """Why none of its replicas begins, if that is so: an operator has to decide."""
    texts = [one["transfers"].get("refused", {}) for one in told.values() if "error" not in one]
    return next((text for each in texts for replica, text in each.items() if replica in found.about["replicas"]), "")


def findings(found: Found, told: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What was found when replicas were compared at their start, and which states are kept since then."""
    mine, out = found.about["replicas"], []
    up = [one for one in told.values() if "error" not in one]
    for text in dict.fromkeys(t for one in up for r, t in one["transfers"].get("found", {}).items() if r in mine):
        out.append(f"when they started: {text}")
    for one in up:
        for kept in one.get("kept", ()):
            if kept["replica"] in mine:
                out.append(
                    f"{kept['replica']} keeps {WORDS[kept['kind']]}: {kept['path']} ({kept['bytes']:,} bytes); remove "
                    "it when nobody needs it"
                )
    return out


def awaited(found: Found, told: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The replicas that answer only when they have their state, each with what it waits for."""
    out = []
    for replica, node in zip(found.about["replicas"], found.nodes, strict=True):
        words, colour = state_of(replica, told[node])
        if colour == "yellow":
            out.append(f"{replica} {words}")
    return out


def queue_of(replica: str, status: Mapping[str, Any]) -> int:
    """Requests that are there and have not begun."""
    stages = status.get("replicas", {}).get(replica, {})
    return sum(stages.get(stage, 0) for stage in ("announced", "held", "proposed", "agreed"))


def whole(digests: Mapping[str, str]) -> str:
    """One short digest of all tables."""
    text = "\n".join(f"{table} {digest}" for table, digest in sorted(digests.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def show(console: Console, found: Found) -> None:
    told = statuses(found)
    try:
        digests: Digests | OboError = found.db.digests()
    except OboError as error:
        digests = error
    console.print(_table(found, told, digests))


def _table(found: Found, told: Mapping[str, Mapping[str, Any]], digests: "Digests | OboError") -> RenderableType:
    table = Table("replica", "address", "state", "view", box=box.ROUNDED, header_style="bold")
    table.add_column("waiting", justify="right")
    table.add_column("performed", justify="right")
    table.add_column("digest")
    known = digests.replicas if not isinstance(digests, OboError) else {}
    for replica, (node, address) in zip(found.about["replicas"], found.nodes.items(), strict=True):
        words, colour = state_of(replica, told[node])
        digest = whole(known[replica]) if replica in known else "-"
        numbers = ("-", "-", "-")
        if "error" not in told[node]:
            performed = told[node]["replicas"].get(replica, {}).get("performed", 0)
            numbers = (str(told[node]["view"]), f"{queue_of(replica, told[node]):,}", f"{performed:,}")
        table.add_row(replica, address, Text(words, style=colour), *numbers, digest)
    return Group(table, Text(*_verdict(digests)))


def _verdict(digests: "Digests | OboError") -> tuple[str, str]:
    if isinstance(digests, OboError):
        return f"no digests: {digests}", "bold red"
    if not digests.equal:
        return f"they differ in {', '.join(digests.differing)}: obo sql check says who", "bold red"
    if digests.missing:
        return f"equal, of those that are there; missing: {', '.join(digests.missing)}", "yellow"
    return "all hold the same", "green"
