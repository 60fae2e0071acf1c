"""``obo status``: each node, the group as it sees it, its links and queues, and what waits there and why."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from framework import BadRequest, OboError
from framework.cli.transactions import merged
from framework.cli.transactions import table as transactions_table
from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir, access, addresses
from framework.orb.client import ask_node
from framework.orb.messages import Look
from framework.orb.replaced import WORDS

PATIENCE = 2.0
_WIDTH = 100  # of what is no terminal
_SHOWN = 20  # lines of what waits


def run(
    at: At = None,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per node and line.")] = False,
    watch: Annotated[float | None, typer.Option(metavar="SECONDS", help="Ask again and again, until Ctrl-C.")] = None,
) -> None:
    """Ask every node how it is. Ends with 1 if one cannot be reached.

    Example: obo status --config examples/cluster.toml --watch 2
    """
    where = addresses(at, config)
    if watch is not None and not 0.1 <= watch <= 3600:
        raise BadRequest(f"--watch {watch:g}: from 0.1 to 3600 seconds")
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    told: list[dict[str, Any]] = []
    try:
        told = _ask(where, config, credentials)
        if watch is None:
            _say(console, told, as_json)
        elif as_json or not console.is_terminal:
            while True:
                _say(console, told, as_json)
                time.sleep(watch)
                told = _ask(where, config, credentials)
        else:
            with Live(_tables(told), console=console, screen=True, auto_refresh=False) as live:
                while True:
                    live.update(_tables(told), refresh=True)
                    time.sleep(watch)
                    told = _ask(where, config, credentials)
    except KeyboardInterrupt:
        if watch is None:
            raise
    raise typer.Exit(1 if any("error" in one for one in told) else 0)


def _ask(where: Sequence[str], config: Path, credentials: Path | None) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for address in where:
        try:
            how: dict[str, Any] = ask_node(address, Look(1, "status"), PATIENCE, **access(config, credentials))
            told.append({"address": address, **how})
        except OboError as error:
            told.append({"address": address, "error": str(error)})
    return told


def _say(console: Console, told: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        for one in told:
            print(msgspec.json.encode(one).decode(), flush=True)
    else:
        console.print(_tables(told))


def _tables(told: list[dict[str, Any]]) -> RenderableType:
    up = [one for one in told if "error" not in one]
    lost = [Text(f"{one['address']}: not reached: {one['error']}", style="bold red") for one in told if "error" in one]
    return Group(
        _nodes(told),
        *_group(up),
        *_transfers(up),
        *_kept(up),
        _links(up),
        _replicas(up),
        *_waiting(up),
        *_calls(up),
        *transactions_table(merged(up)),
        *lost,
    )


def _nodes(told: list[dict[str, Any]]) -> Table:
    table = Table(title="Nodes", title_justify="left")
    for name in ("node", "address", "view", "clock", "up for", "memory", "threads", "clients", "their calls"):
        table.add_column(name, justify="left" if name in ("node", "address") else "right")
    for one in told:
        if "error" in one:
            table.add_row("[red]not reached[/red]", one["address"])
            continue
        process, clients = one["process"], one["clients"]
        row = (one["view"], one["clock"], _duration(process["uptime"]), f"{process['rss'] / 2**20:.0f} MiB")
        calls = sum(clients.values()) + one["invokes"]
        table.add_row(one["node"], one["address"], *map(str, (*row, process["threads"], len(clients), calls)))
    return table


def _group(up: list[dict[str, Any]]) -> list[RenderableType]:
    """What each node says of the group: they may differ while it changes."""
    table = Table("node", "state", "view", "members since", "silent", title="Group", title_justify="left")
    colours = {"steady": "green", "changing": "yellow"}
    for one in up:
        group = one["group"]
        members = ", ".join(f"{name} {since}" for name, since in group["members"].items())
        silent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in group["suspected"].items())
        state = f"[{colours.get(group['state'], 'bold red')}]{group['state']}[/]"
        table.add_row(one["node"], state, str(one["view"]), members or "-", silent or "-")
    return [table, *(Text(one["group"]["why"], style="bold red") for one in up if one["group"]["why"])]


def _transfers(up: list[dict[str, Any]]) -> list[RenderableType]:
    """States on their way, and replicas that wait for theirs."""
    table = Table("replica", "its state", "bytes", "of", title="States to come", title_justify="left")
    for one in up:
        moving = one["transfers"]
        jobs = {job["replica"]: job for job in moving["fetching"]}
        for replica in sorted(moving["unready"]):
            job = jobs.get(replica)
            if replica in moving["adopting"]:
                table.add_row(replica, "is being taken over")
            elif replica in moving.get("refused", {}):
                table.add_row(replica, "[bold red]none begins: its replicas differ, see above[/]")
            elif replica in moving.get("comparing", ()):
                table.add_row(replica, "the states that are held are compared")
            elif pause := moving.get("pausing", {}).get(replica):
                table.add_row(replica, Text(f"asks again in {pause['seconds']:.0f} s: {pause['why']}"))
            elif job is None:
                table.add_row(replica, "[bold red]nobody has one so far[/]")
            else:
                fault = f" ({job['fault']})" if job["fault"] else ""
                total = "?" if job["total"] is None else f"{job['total']:,}"
                table.add_row(replica, Text(f"comes from {job['from']}{fault}"), f"{job['bytes']:,}", total)
    return [table] if table.row_count else []


def _kept(up: list[dict[str, Any]]) -> list[RenderableType]:
    """States that another one took the place of; an operator removes them."""
    table = Table("replica", "what", "where", "bytes", title="Kept until you remove it", title_justify="left")
    for one in up:
        for kept in one.get("kept", ()):
            table.add_row(kept["replica"], WORDS[kept["kind"]], Text(kept["path"]), f"{kept['bytes']:,}")
    told = dict.fromkeys(text for one in up for text in one["transfers"].get("found", {}).values())
    return [*(Text(text, style="bold red") for text in told), *([table] if table.row_count else [])]


def _links(up: list[dict[str, Any]]) -> RenderableType:
    table = Table("link", "state", title="Links", title_justify="left")
    for name in ("times lost", "queued", "unacked"):
        table.add_column(name, justify="right")
    for one in up:
        for peer, link in one["links"].items():
            state = ("up" if link["member"] else "up, no member") if link["up"] else "[bold red]DOWN[/bold red]"
            table.add_row(f"{one['node']} → {peer}", state, *(str(link[k]) for k in ("lost", "queued", "unacked")))
    return table if table.row_count else Text("no links: there is one node")


def _replicas(up: list[dict[str, Any]]) -> RenderableType:
    names = ("announced", "held", "proposed", "agreed", "running", "performed", "convoys")
    table = Table("replica", title="Replicas: requests by stage", title_justify="left")
    for name in names:
        table.add_column(name, justify="right")
    for one in up:
        for replica, stages in sorted(one["replicas"].items()):
            table.add_row(replica, *(str(stages[n]) for n in names))
    return table if table.row_count else Text("no replicas")


def _waiting(up: list[dict[str, Any]]) -> list[RenderableType]:
    every = [w for one in up for w in one["waiting"]]
    if not every:
        return [Text("nothing waits")]
    table = Table("at", "request", "of", "stage", "why it waits", title="Waiting", title_justify="left")
    for w in every[:_SHOWN]:
        table.add_row(*(Text(w[k]) for k in ("replica", "request", "call", "stage", "why")))
    more = sum(one["waiting_in_all"] for one in up) - table.row_count
    return [table, *([Text(f"and {more} more")] if more else [])]


def _calls(up: list[dict[str, Any]]) -> list[RenderableType]:
    every = [(one["node"], c) for one in up for c in one["calls"]]
    if not every:
        return []
    table = Table("at", "caller", "call", "receipt", "no answer from", title="Calls in flight", title_justify="left")
    for node, c in every[:_SHOWN]:
        table.add_row(node, Text(c["by"]), str(c["number"]), c["receipt"], ", ".join(c["missing"]))
    more = len(every) - table.row_count
    return [table, *([Text(f"and {more} more")] if more else [])]


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
