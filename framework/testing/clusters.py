"""``cluster``: real nodes for a test, in its process or as processes, with links that can be broken.

    with cluster({"bank": Bank}, nodes=3) as c:
        bank = c.connect().object(Bank, "bank")
        c.cut("n1", "n2")
        later = bank.deposit.submit("ann", 5)
        c.heal()
        later.result()
        c.verify()                     # stops the nodes; AssertionError if their traces break a definition

Each node has a view of its own of where its peers are: the addresses of forwarders that belong to the cluster.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from framework.declare import Object
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest, Unavailable
from framework.orb.client import AsyncOrb, Orb, ask_node, connect
from framework.orb.messages import Look
from framework.sim.oracle import judge
from framework.sim.verdict import Verdict
from framework.testing.background import Background
from framework.testing.forward import Forwarder, State
from framework.testing.inside import NodeInside
from framework.testing.plan import Plan
from framework.testing.ports import held
from framework.testing.processes import NodeProcess, Reaper
from framework.trace.check import load

# seconds; long, for machines that are busy: they end what hangs, and nothing depends on them
READY = 60.0  # for all nodes to be ready
CALL = 60.0  # for a call of a client that says nothing else
SETTLE = 60.0
_PATIENCE = 60.0


class Member(Protocol):
    """A node of the cluster, wherever it runs."""

    name: str
    alive: bool

    def wait_ready(self, until: float) -> None: ...
    def restart(self) -> None: ...
    def crash(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def ask_to_stop(self, leave: bool) -> None: ...
    def wait_stopped(self) -> None: ...
    def end(self) -> None: ...


class Cluster:
    """Made by ``cluster``; everything starts in ``with`` and has ended after it."""

    def __init__(
        self, plan: Plan, processes: bool, directory: Path | None, ready: float, links: bool, traces: bool
    ) -> None:
        self._plan = plan
        self._processes = processes
        self._with_links = links
        self._with_traces = traces
        self._ready = ready
        self._members: dict[str, Member] = {}
        self._links: dict[tuple[str, str], Forwarder] = {}
        self._end = ExitStack()
        self._given = directory
        self.nodes = plan.nodes
        self.addresses: dict[str, str] = {}
        self.verified = False

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._end.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.close()

    def _start(self) -> None:
        if self._given is None:
            self.directory = Path(self._end.enter_context(tempfile.TemporaryDirectory(prefix="obo-cluster-")))
        else:
            self.directory = self._given
            self.directory.mkdir(parents=True, exist_ok=True)
        self._background = Background("obo-cluster")
        self._end.callback(self._background.close)
        reaper = Reaper() if self._processes else None
        if reaper is not None:
            self._end.callback(reaper.close)
        self._plan.certify(self.directory)
        self._choose_addresses()
        self._end.callback(self._close_links)
        for name, addresses in self._background.run(self._views(), _PATIENCE).items():
            self._members[name] = self._member(name, addresses, reaper)
            self._end.callback(self._members[name].end)
        until = time.monotonic() + self._ready
        for member in self._members.values():
            member.wait_ready(until)

    def _choose_addresses(self) -> None:
        ports = self._end.enter_context(held(len(self.nodes)))
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(self.nodes, ports, strict=True)}

    async def _views(self) -> dict[str, dict[str, str]]:
        """Where each node binds and dials: itself where it is, its peers behind forwarders."""
        if not self._with_links:
            return {name: dict(self.addresses) for name in self.nodes}
        views = {name: {name: self.addresses[name]} for name in self.nodes}
        for here, there in permutations(self.nodes, 2):
            host, _, port = self.addresses[there].rpartition(":")
            link = self._links[here, there] = Forwarder(host, int(port))
            views[here][there] = await link.start()
        return {name: {peer: view[peer] for peer in self.nodes} for name, view in views.items()}

    def _member(self, name: str, addresses: Mapping[str, str], reaper: Reaper | None) -> Member:
        for old in self.traces(name):  # of an earlier run
            old.unlink()
        if reaper is None:
            return NodeInside(name, self._plan.config(addresses, self.directory), self.directory, self._background)
        file = self.directory / f"{name}.toml"
        file.write_text(self._plan.toml(addresses), encoding="utf-8")
        return NodeProcess(name, file, self.directory, reaper, self._with_traces)

    def traces(self, name: str) -> list[Path]:
        """One for each life of a node."""
        return [p for p in sorted(self.directory.glob(f"{name}.*jsonl")) if p.name.split(".")[0] == name]

    @property
    def pids(self) -> dict[str, int]:
        """Of nodes that are processes and run, for a debugger or a look at the machine."""
        return {m.name: m.pid for m in self._members.values() if isinstance(m, NodeProcess) and m.alive}

    # clients

    def connect(self, *nodes: str, timeout: float | None = None) -> Orb:
        """A client of these nodes, in this order, then of the others. It is closed with the cluster."""
        orb = connect(self._addresses(nodes), _timeout(timeout), **self._plan.access(self.directory))
        self._end.callback(orb.close)
        return orb

    def async_orb(self, *nodes: str, timeout: float | None = None) -> AsyncOrb:
        """The same for coroutines: ``async with c.async_orb() as orb``."""
        return AsyncOrb(self._addresses(nodes), _timeout(timeout), **self._plan.access(self.directory))

    def _addresses(self, first: Sequence[str]) -> list[str]:
        wanted = [*(self._find(name).name for name in first), *(n for n in self.nodes if n not in first)]
        alive = [self.addresses[name] for name in wanted if self._members[name].alive]
        if not alive:
            raise Unavailable("no node of the cluster is running any more")
        return alive

    # faults

    def crash(self, node: str) -> None:
        """As SIGKILL: it ends in the middle of whatever it does. The others go on without it, after a moment."""
        self._running(node).crash()

    def stop(self, node: str) -> None:
        """As SIGTERM: it takes no more calls, answers those in flight, leaves the group if it can, and ends."""
        member = self._running(node)
        member.ask_to_stop(leave=True)
        member.wait_stopped()

    def wait_stopped(self, node: str) -> None:
        """Until a node has ended that was asked to in another way, for example by ``obo leave``."""
        self._running(node).wait_stopped()

    def restart(self, node: str) -> None:
        """A node that has ended is started again; returns when it is a member of the group."""
        member = self._find(node)
        if member.alive:
            raise BadRequest(f"{node} is running: crash or stop it first")
        member.restart()
        member.wait_ready(time.monotonic() + self._ready)

    def pause(self, node: str) -> None:
        """As SIGSTOP: it does nothing until ``resume``, and its connections stand. Needs ``processes=True``."""
        self._running(node).pause()

    def resume(self, node: str) -> None:
        self._running(node).resume()

    def cut(self, a: str, b: str, *, silently: bool = False) -> None:
        """No connection between two nodes; silently: it stands, but nothing comes through until ``heal``."""
        self._set(self._between(a, b), "silent" if silently else "cut")

    def heal(self, *pair: str) -> None:
        """All links, or the one between two nodes, are whole again and quick."""
        if len(pair) not in (0, 2):
            raise BadRequest("heal() heals all links, heal(a, b) one")
        links = self._between(*pair) if pair else list(self._links.values())
        self._set(links, "whole")
        self._background.run(_slow(links, 0.0), _PATIENCE)

    def slow(self, a: str, b: str, delay: float) -> None:
        """What goes between two nodes takes ``delay`` seconds longer, until ``heal``."""
        self._background.run(_slow(self._between(a, b), delay), _PATIENCE)

    def _between(self, a: str, b: str) -> list[Forwarder]:
        if self._find(a) is self._find(b):
            raise BadRequest(f"there is no link from {a} to itself")
        if not self._with_links:
            raise BadRequest("this cluster was made with links=False: its nodes reach each other directly")
        return [self._links[a, b], self._links[b, a]]

    def _close_links(self) -> None:
        self._background.run(_close(list(self._links.values())), _PATIENCE)

    def _set(self, links: Sequence[Forwarder], state: State) -> None:
        self._background.run(_set(links, state), _PATIENCE)

    def _find(self, node: str) -> Member:
        if node not in self._members:
            raise BadRequest(f"no node {node!r}; {did_you_mean(node, self.nodes)}")
        return self._members[node]

    def _running(self, node: str) -> Member:
        member = self._find(node)
        if not member.alive:
            raise BadRequest(f"{node} has ended already")
        return member

    # the end

    def look(self, node: str, timeout: float = _PATIENCE) -> dict[str, Any]:
        """What ``obo status`` says of a node, whether it is a member or not."""
        told: dict[str, Any] = ask_node(
            self.addresses[self._running(node).name], Look(1, "status"), timeout, **self._plan.access(self.directory)
        )
        return told

    def settle(self, timeout: float = SETTLE) -> bool:
        """Wait until all nodes that run, and only they, are members, have their states, and nothing is in flight:
        one-way calls, too, are performed everywhere. False if that is not so after ``timeout`` seconds."""
        until = time.monotonic() + timeout
        before: object = None
        while True:
            alive = sorted(m.name for m in self._members.values() if m.alive)
            told = [self._look_now(name) for name in alive]
            clocks = [status.get("clock") for status in told]
            if all(status.get("members") == alive and not _open(status) for status in told):
                if clocks == before:  # nothing on the way between two nodes, either
                    return True
                before = clocks
            if time.monotonic() > until:
                return False
            time.sleep(0.05)

    def _look_now(self, node: str) -> dict[str, Any]:
        try:
            return self.look(node)
        except Unavailable:
            return {}

    def verify(self, settle: float = SETTLE) -> Verdict:
        """Heal all links, let the nodes finish, stop them, and judge their traces by the definitions.

        AssertionError names what was broken. The same as ``obo verify`` on the cluster's directory."""
        if not self._with_traces:
            raise BadRequest("this cluster was made with traces=False: there is nothing to verify")
        self.verified = True
        settled, alive = self.finish(settle)
        files = [_whole_lines(path) for name in self.nodes for path in self.traces(name)]
        # where most are gone, those who are left cannot do without them: then some stay in the view for ever
        verdict = judge(load(files), ended=settled or 2 * alive > len(self.nodes))
        if verdict.violations:
            found = "\n".join(map(str, verdict.violations))
            raise AssertionError(f"the traces in {self.directory} break the definitions of OBO delivery:\n{found}")
        return verdict

    def lost(self) -> list[str]:
        """Nodes that have ended and nobody asked them to; from here on they count as ended."""
        gone = [m for m in self._members.values() if isinstance(m, NodeProcess) and m.alive and m.has_ended]
        for member in gone:
            member.end()
        return [m.name for m in gone]

    def finish(self, settle: float = SETTLE) -> tuple[bool, int]:
        """Heal all links, let the nodes finish and stop them all. Was everything over, and how many were there?"""
        self.heal()
        alive = [m for m in self._members.values() if m.alive]
        for member in alive:
            member.resume()
        settled = bool(alive) and self.settle(settle)
        for member in alive:
            member.ask_to_stop(leave=False)
        for member in alive:
            member.wait_stopped()
        return settled, len(alive)


def _open(status: Mapping[str, Any]) -> bool:
    """Has a node anything open?"""
    busy = any(link["queued"] or link["unacked"] for link in status["links"].values())
    here = status["waiting_in_all"] or status["running"] or status["calls"] or status["transfers"]["unready"]
    return bool(busy or here or status["group"]["state"] != "steady")


def cluster(
    objects: Mapping[str, type[Object] | str],
    nodes: int | Sequence[str] = 3,
    *,
    processes: bool = False,
    on: Mapping[str, Sequence[str]] | None = None,
    trace: Path | str | None = None,
    tls: bool = False,
    ready: float = READY,
    suspect_after: float | None = None,
    links: bool = True,
    traces: bool = True,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Cluster:
    """Nodes with these objects, for a ``with`` statement.

    ``objects``: name to class. ``nodes``: how many (n1, n2, ...), or their names. ``on``: on which nodes an object
    lives; on all, if not said. ``processes``: each node is a process, started by ``obo serve``, which imports the
    classes. ``trace``: a directory for traces, logs and configuration; without it they go when the cluster ends.
    ``tls``: with certificates for all and a token for clients. ``ready``: seconds that the nodes have to start.
    ``suspect_after``: seconds of silence after which the others go on without a node; else as for ``obo serve``.
    ``links=False``: nodes reach each other directly, nothing can be cut; ``traces=False``: processes write none. Both
    are for measurements. ``options``: of objects that have some, by name."""
    if not (traces or processes):
        raise BadRequest("traces=False is for processes=True")
    plan = Plan(objects, nodes, on, tls, suspect_after, options)
    return Cluster(plan, processes, Path(trace) if trace is not None else None, ready, links, traces)


async def _set(links: Sequence[Forwarder], state: State) -> None:
    for link in links:
        link.set(state)


async def _close(links: Sequence[Forwarder]) -> None:
    for link in links:
        await link.close()


async def _slow(links: Sequence[Forwarder], delay: float) -> None:
    for link in links:
        link.slow(delay)


def _timeout(seconds: float | None) -> float:
    return CALL if seconds is None else seconds


def _whole_lines(path: Path) -> Path:
    """A node that was killed may have been writing: what it had not finished did not happen."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end < len(data):
        path.write_bytes(data[:end])
    return path
