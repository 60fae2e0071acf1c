"""The processes of a benchmark: started, asked what they cost, always ended. All of them listen on loopback alone."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from framework.bench.load import Measured, Order
from framework.interrupt import undisturbed
from framework.testing.children import Child
from framework.testing.ports import held

SLACK = 90.0  # an order may last that much longer than it says

_PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Process(Child):
    """One of a benchmark: what it is asked to do, and what that cost."""

    def ask(self, order: Order) -> Measured:
        self.say(msgspec.json.encode(order).decode())
        return msgspec.json.decode(self.line(order.seconds + SLACK), type=Measured)

    def cpu(self) -> float | None:
        return cpu_of(self.pid)

    def rss(self) -> float | None:
        return rss_of(self.pid)


def cpu_of(pid: int, waited: bool = False) -> float | None:
    """Seconds of CPU so far, with those of children that have ended if ``waited``; None where there is no /proc."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(map(int, fields[11 : 15 if waited else 13])) / _TICK


def rss_of(pid: int) -> float | None:
    """Resident memory in MiB; None where there is no /proc."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in (_PROC / str(pid) / "task" / str(pid) / "children").read_text().split()]
    except OSError:
        return []


class System:
    """A client and the servers it calls."""

    def __init__(self, name: str, client: Process, servers: Sequence[Process]) -> None:
        self.name = name
        self.client = client
        self.servers = servers
        self.processes = [client, *servers]


NODES = ("n1", "n2", "n3")


def _start(stack: ExitStack, process: Process) -> Process:
    with undisturbed():
        return stack.enter_context(process)


def start_nodes(stack: ExitStack, directory: Path) -> System:
    """Three nodes by ``obo serve``; the client's home is n1."""
    echo = "framework.bench.echo:Echo"
    lines = [*declared("here", echo, NODES[:1]), *declared("everywhere", echo, NODES)]
    addresses, servers = serve(stack, directory, lines)
    return System("obo", start_client(stack, "obo", addresses[0], directory), servers)


def declared(name: str, cls: str, on: Sequence[str]) -> list[str]:
    """An object, as lines of a configuration."""
    places = ", ".join(f'"{n}"' for n in on)
    return [f"[objects.{name}]", f'class = "{cls}"', f"on = [{places}]"]


def serve(stack: ExitStack, directory: Path, lines: Sequence[str]) -> tuple[list[str], list[Process]]:
    """The nodes by ``obo serve``, when they are ready, and their addresses. ``lines``: what else is configured."""
    addresses = [f"127.0.0.1:{port}" for port in stack.enter_context(held(len(NODES)))]
    config = directory / "cluster.toml"
    nodes = (f'{n} = "{a}"' for n, a in zip(NODES, addresses, strict=True))
    config.write_text("\n".join(["[nodes]", *nodes, *lines]) + "\n")
    words = ["framework.cli.main", "serve", "--config", str(config), "--drain", "1", "--node"]
    servers = [_start(stack, Process(n, [*words, n], directory)) for n in NODES]
    for server in servers:
        server.line()
    return addresses, servers


def start_baseline(stack: ExitStack, name: str, directory: Path) -> System:
    words = ["framework.bench.side", "serve", name]
    server = _start(stack, Process(f"{name}-server", words, directory))
    return System(name, start_client(stack, name, server.line(), directory), [server])


def start_client(stack: ExitStack, name: str, address: str, directory: Path) -> Process:
    words = ["framework.bench.side", "client", name, address]
    client = _start(stack, Process(f"{name}-client", words, directory))
    client.line()
    return client
