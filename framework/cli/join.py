"""``obo join --node n4 --config cluster.toml``: a node of a group that exists, until SIGTERM."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from framework.cli.serve import Bind, ConfigFile, Data, Drain, Insecure, NodeName, Trace, Verbose, ready, serve

if TYPE_CHECKING:
    from framework.orb.node import Node

LOOK = 0.1


def run(
    node: NodeName,
    config: ConfigFile = Path("cluster.toml"),
    trace: Trace = None,
    drain: Drain = 10.0,
    insecure: Insecure = False,
    bind: Bind = None,
    data: Data = None,
    verbose: Verbose = False,
) -> None:
    """Let a node join a group that exists, and serve as obo serve does.

    Unlike obo serve it never forms a group: if the others cannot be reached, or have no group, it waits and says so,
    and no second group with empty objects comes up. It tells which states it gets, and when it has all of them.

    Example: obo join --node n3 --config examples/cluster.toml
    """
    serve(node, config, trace, drain, insecure, bind, data, verbose, _joined, joins=True)


async def _joined(node: "Node") -> None:
    await ready(node)
    began = asyncio.get_running_loop().time()
    sizes = await _states(node)
    took = asyncio.get_running_loop().time() - began
    view = node.life.com.lives.view
    got = ", ".join(f"{replica} ({size:,} bytes)" for replica, size in sizes.items()) or "nothing to get"
    print(f"{node.name} has joined view {view.version}: {', '.join(view.members)}", flush=True)
    print(f"{node.name} has all states after {took:.1f} s: {got}", flush=True)


async def _states(node: "Node") -> dict[str, int]:
    """Until it has all; with a bar for each on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(30), DownloadColumn(), TransferSpeedColumn())
    bars: dict[str, TaskID] = {}
    sizes: dict[str, int] = {}
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        while node.unwell():
            for job in node.member.handing.status()["fetching"] if node.member is not None else ():
                at = job["replica"]
                if at not in bars:
                    bars[at] = progress.add_task(f"{at} from {job['from']}", total=None)
                sizes[at] = max(sizes.get(at, 0), job["bytes"])
                progress.update(bars[at], completed=job["bytes"], total=job["total"] or None)
            await asyncio.sleep(LOOK)
    return sizes
