"""The cluster that a run drives: nodes of its own, started for it, or one that is there already."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from framework.errors import BadRequest, OboError
from framework.load.found import Found
from framework.load.registry import Needs
from framework.load.traces import Converter, Life, convert, life_name
from framework.net.security import Access, Credentials, client
from framework.orb.client import Orb, connect, in_background, parse_addresses
from framework.orb.trace_client import Told, list_traces, read_trace
from framework.testing.clusters import Cluster, cluster

PATIENCE = 5.0  # seconds for a node to say which traces it has
SETTLE = 20.0  # seconds that own nodes have to finish what they were sent

#: Told what is being done.
Tell = Callable[[str], None]


class NodeTraces(msgspec.Struct, omit_defaults=True):
    """Of one node in ``run.toml``."""

    address: str
    gone: str = ""  # why it could not be asked
    traced: bool = True
    traces: dict[str, Life] = {}

    @property
    def records(self) -> int:
        return sum(life.records for life in self.traces.values())

    @property
    def drops(self) -> int:
        return sum(life.dropped + life.unreadable for life in self.traces.values())


class Target(Protocol):
    addresses: list[str]
    access: Access
    own: bool
    prefix: str  # of client names, as the nodes see them
    traced: bool

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def notes(self) -> list[str]:
        """What is to be told before the run."""
        ...

    def collect(self, traces: Path, found: Found, tell: Tell) -> dict[str, NodeTraces]: ...


def ask(target: Target, timeout: float) -> Found:
    with reach(target, timeout) as orb:
        return Found.told(orb.look("objects"))


def reach(target: Target, timeout: float) -> Orb:
    return connect(target.addresses, timeout, **target.access)


class Own:
    """Nodes by ``obo serve`` on loopback, in ``logs``; what they write is read when they have ended, also of those that
    were killed."""

    own = traced = True
    prefix = ""

    def __init__(
        self,
        nodes: int,
        objects: Mapping[str, str],
        on: Mapping[str, Sequence[str]],
        options: Mapping[str, Mapping[str, Any]],
        logs: Path,
    ) -> None:
        self.access: Access = {}
        self.addresses: list[str] = []
        self._logs = logs
        self._end = ExitStack()
        self._cluster: Cluster = cluster(
            dict(objects), nodes, processes=True, on=on, trace=logs, links=False, options=options
        )

    @classmethod
    def of(cls, workload: str, nodes: int, logs: Path) -> "Own":
        needs = Needs(workload, [f"n{i + 1}" for i in range(nodes)])
        return cls(nodes, needs.objects, needs.on, needs.options, logs)

    def __enter__(self) -> Self:
        self._end.enter_context(self._cluster)
        self.addresses = list(self._cluster.addresses.values())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.close()

    def notes(self) -> list[str]:
        return []

    def collect(self, traces: Path, found: Found, tell: Tell) -> dict[str, NodeTraces]:
        said: dict[str, NodeTraces] = {}
        lost = self._cluster.lost()
        tell("waiting until the nodes have finished")
        fault = ""
        try:
            self._cluster.finish(SETTLE)
        except OboError as error:
            fault = str(error).partition("\n")[0]
        for name, address in self._cluster.addresses.items():
            tell(f"trace of {name}")
            gone = "it ended before the run did: was it killed?" if name in lost else fault
            files = self._cluster.traces(name)
            lives = {life_name(file.name): convert(file, traces) for file in files}
            said[name] = NodeTraces(address, gone, traces=lives)
            for file in files:
                file.unlink()
        shutil.rmtree(self._logs / "data", ignore_errors=True)
        return said


class Given:
    """A cluster that is there. Nodes are asked for their traces over gRPC; who does not answer is told as gone."""

    own = False

    def __init__(self, addresses: list[str], access: Access) -> None:
        self.addresses = parse_addresses(addresses)
        self.access = access
        self._credentials: Credentials = client(access, self.addresses)
        self._notes: list[str] = []
        self.prefix = ""
        self.traced = False

    def __enter__(self) -> Self:
        """Do nodes trace, and may we read it? Asked before the run; a node that is away now may be there later."""
        faults: list[OboError] = []
        for address in self.addresses:
            try:
                told = self._list(address)
            except OboError as error:
                faults.append(error)
                continue
            self.prefix = f"{told.caller}." if told.caller else ""
            self.traced |= told.traced
        if not self.traced and len(faults) == len(self.addresses):
            self._notes.append(f"no node gives its traces, only clients are recorded: {faults[0]}")
        elif not self.traced:
            self._notes.append(
                "the nodes write no traces, only clients are recorded: start them with obo serve --trace DIR, or say "
                "trace in [serve] of the cluster.toml"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def notes(self) -> list[str]:
        return self._notes

    def _list(self, address: str) -> Told:
        return in_background(list_traces(address, self._credentials, PATIENCE))

    def collect(self, traces: Path, found: Found, tell: Tell) -> dict[str, NodeTraces]:
        said: dict[str, NodeTraces] = {}
        if not self.traced:
            return {name: NodeTraces(address, traced=False) for name, address in found.nodes.items()}
        for address in self.addresses:  # as the user names them: perhaps not what nodes call each other
            try:
                told = self._list(address)
            except OboError:
                continue
            if told.node not in said:
                said[told.node] = self._of(told, address, traces, tell)
        for name, address in found.nodes.items():
            if name in said:
                continue
            try:
                said[name] = self._of(self._list(address), address, traces, tell)
            except OboError as error:
                said[name] = NodeTraces(address, gone=str(error))
        return dict(sorted(said.items()))

    def _of(self, told: Told, address: str, traces: Path, tell: Tell) -> NodeTraces:
        node = NodeTraces(address, traced=told.traced)
        for file, size in told.traces.items():
            tell(f"trace of {told.node}: {file}, {size / (1 << 20):.1f} MiB")
            converter = Converter(traces / life_name(file))
            try:
                in_background(read_trace(address, self._credentials, file, size, converter.take))
            except OboError as error:
                node.gone = f"after a part of {file}: {error}"
            finally:
                node.traces[life_name(file)] = converter.close()
        return node


def target(workload: str, nodes: int | None, addresses: list[str] | None, access: Access, logs: Path) -> Target:
    """``nodes``: so many of its own; else the cluster at these addresses."""
    if nodes is not None:
        return Own.of(workload, nodes, logs)
    if not addresses:
        raise BadRequest("which cluster? Give --at host:port, --config FILE, or --nodes 3 for one of its own")
    return Given(addresses, access)
