"""``obo load WORKLOAD``: drives a cluster, and writes down what clients and nodes saw. See docs/load.md."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from framework.cli import load_options as options
from framework.cli.numbers import share
from framework.cli.where import CLUSTER, At, CredentialsDir, access, addresses
from framework.errors import BadRequest

if TYPE_CHECKING:
    from framework.load.plan import Plan

_NO_SETTINGS = ("workload", "out", "at", "config", "credentials", "nodes", "as_json")
_SHARES = ("reads", "ucast", "mcast", "pcast", "oneway")


def run(
    workload: Annotated[
        str,
        typer.Argument(
            help="counter, bank, travel, file, sql, sql-insert or fig9; FILE.toml with settings; or module:function."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run directory; must not exist yet, or be empty.")],
    at: At = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", envvar="OBO_CONFIG", help="The cluster.toml.")
    ] = None,
    credentials: CredentialsDir = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, max=32, help="Start so many nodes on loopback for the run; fig9 has 6.")
    ] = None,
    rate: options.Rate = None,
    arrivals: options.Arrivals = None,
    clients: options.Clients = None,
    processes: options.Processes = None,
    duration: options.Duration = None,
    warmup: options.Warmup = None,
    ramp: options.Ramp = None,
    conflict: options.Conflict = None,
    reads: options.Reads = None,
    keys: options.Keys = None,
    skew: options.Skew = None,
    ucast: options.Ucast = None,
    mcast: options.Mcast = None,
    pcast: options.Pcast = None,
    oneway: options.Oneway = None,
    receipt: options.Receipt = None,
    payload: options.Payload = None,
    timeout: options.Timeout = None,
    in_flight: options.InFlight = None,
    step: options.Step = None,
    seeds: options.Seeds = None,
    seed: options.Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as one JSON object on stdout.")] = False,
) -> None:
    """Drive a cluster, and write a run directory for obo analyze and obo verify.

    Latency counts from when a call was due. Ctrl-C ends the run in order and keeps what there is. Ends with 0 when it
    is complete, 130 when interrupted, 1 when a client process or node was lost on the way."""
    given = {name: value for name, value in locals().items() if value is not None and name not in _NO_SETTINGS}
    _check_installed()
    made = planned(workload, {name: _read(name, value) for name, value in given.items()})
    if nodes is not None and (at or config is not None):
        raise BadRequest("--nodes starts a cluster of its own; --at and --config name another: give one of them")
    where = None if nodes is not None else _where(at, config, made)
    raise typer.Exit(_run(made, nodes, where, access(config or CLUSTER, credentials) if where else {}, out, as_json))


def _read(name: str, value: Any) -> Any:
    """Shares are written as 0.3 or 30%."""
    if name == "conflict":
        return [share("--conflict", part.strip()) for part in value.split(",")]
    return share(f"--{name}", value) if name in _SHARES else value


def _check_installed() -> None:
    """Told at once, not when the run is over."""
    try:
        import pyarrow  # noqa: F401
        import tomli_w  # noqa: F401
    except ImportError as error:
        raise BadRequest(f"obo load needs pyarrow and tomli-w: pip install 'obo[load]' ({error})") from None


def planned(workload: str, given: dict[str, Any]) -> "Plan":
    """The settings: those of a file, and over them those that were given as options."""
    from framework.load.fig9 import check_given
    from framework.load.plan import plan, read
    from framework.load.registry import check

    settings: dict[str, Any] = {"workload": workload}
    if workload.endswith(".toml"):
        settings = read(Path(workload))
    made = plan({**settings, **given}, workload)
    check(made.workload, made.payload)
    check_given(made, {*settings, *given})
    return made


def _where(at: str | None, config: Path | None, made: "Plan") -> list[str] | None:
    """None: a cluster of its own, which fig9 always has."""
    if made.workload == "fig9":
        if at or config is not None:
            raise BadRequest("fig9 needs objects that no other cluster has: it starts nodes of its own")
        return None
    if at is None and config is None and not CLUSTER.exists():
        raise BadRequest("which cluster? Give --at host:port, --config FILE, or --nodes 3 for one of its own")
    return addresses(at, config or CLUSTER)


def _run(made: "Plan", nodes: int | None, where: list[str] | None, how: Any, out: Path, as_json: bool) -> int:
    from framework.cli.load_view import View, summary
    from framework.load.driver import Load
    from framework.load.fig9 import own_nodes
    from framework.load.registry import FIG9
    from framework.load.rundir import RunDirectory
    from framework.load.target import Target, target

    directory = RunDirectory(out, made)
    chosen: Target = (
        own_nodes(made, nodes, directory.logs)
        if made.workload == FIG9
        else target(made.workload, nodes, where, how, directory.logs)
    )
    directory.make()
    with View(made) as view:
        load = Load(made, directory, chosen, view.tell)
        ended = load.run()
    said = summary(load, ended)
    if as_json:
        print(msgspec.json.encode(said).decode())
    else:
        view.show(said)
    if ended == "interrupted":
        return 130
    gone = any(node.gone for node in load.nodes.values())
    if ended != "complete":
        print(f"obo: error: {ended}", file=sys.stderr)
    return 0 if ended == "complete" and not gone else 1
