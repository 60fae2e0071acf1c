"""``obo serve --node n1 --config cluster.toml``: a node, until SIGTERM."""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from framework.orb.config import read
from framework.orb.garbage import Collector
from framework.orb.loops import new_loop

if TYPE_CHECKING:
    from framework.orb.node import Node

log = logging.getLogger("framework.serve")

WAITING = 1.0  # seconds before it is told who is missing
_NICE = 10  # of a process that ends
FAULT = 70  # exit code: the framework has a fault, and its node stopped by itself (EX_SOFTWARE of sysexits.h)


NodeName = Annotated[str, typer.Option("--node", metavar="NAME", envvar="OBO_NODE", help="Which of the nodes this is.")]
ConfigFile = Annotated[
    Path, typer.Option("--config", metavar="FILE", envvar="OBO_CONFIG", help="The cluster.toml; the same at all nodes.")
]
Trace = Annotated[
    Path | None,
    typer.Option("--trace", metavar="DIR", envvar="OBO_TRACE", help="Write what happens to DIR/NODE.jsonl."),
]
Drain = Annotated[
    float, typer.Option("--drain", envvar="OBO_DRAIN", help="Seconds that SIGTERM leaves to what is in flight.")
]
Insecure = Annotated[
    bool, typer.Option("--insecure", envvar="OBO_INSECURE", help="Leave loopback without TLS and tokens.")
]
Bind = Annotated[
    str | None, typer.Option("--bind", metavar="HOST", envvar="OBO_BIND", help="Listen here, not at its address.")
]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", envvar="OBO_DATA", help="Keep durable objects in DIR/NAME.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")]


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
    """Serve the objects of one node. It is ready when it is a member of the group.

    SIGTERM drains, leaves the group if enough members stay, and stops; SIGINT (Ctrl-C) drains and stops, as when all
    nodes end together. A second signal stops at once.
    """
    serve(node, config, trace, drain, insecure, bind, data, verbose, ready, joins=False)


def serve(
    node: str,
    config: Path,
    trace: Path | None,
    drain: float,
    insecure: bool,
    bind: str | None,
    data: Path | None,
    verbose: bool,
    tell: "Callable[[Node], Coroutine[Any, Any, None]]",
    joins: bool,
) -> NoReturn:
    """Until SIGTERM. ``tell`` says how it gets on, until it is ready."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format=f"%(asctime)s {node} %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    from framework.orb.node import Node

    cluster = read(config)
    if bind is not None:
        cluster.listen_on(bind)
    if data is not None:
        cluster.keep_in(str(data))
    where = trace or (Path(cluster.serve.trace) if cluster.serve.trace else None)
    if cluster.serve.schedule == "batch":
        _in_batches()
    sys.setswitchinterval(0.0005)  # a busy method must not keep the loop waiting for its usual 5 ms
    with asyncio.Runner(loop_factory=new_loop) as runner:
        code = runner.run(_serve(lambda: Node(cluster, node, where, insecure, joins), drain, tell))
    _leave(node, code)


def _in_batches() -> None:
    """Threads of nodes wake each other, and those of other nodes on the machine, all the time. Who wakes waits until
    the one that runs has no more to do, or its time is over: so more is done at a time, with what is in the cache."""
    if hasattr(os, "SCHED_BATCH"):
        try:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # threads inherit it
        except OSError as error:  # a container may forbid it
            log.info("nodes are not scheduled in batches here: %s", error)


def _leave(node: str, code: int) -> NoReturn:
    """At once. Python would wait for threads that perform methods, and a method that never ends must not keep the node;
    and it would look at each object once more, which takes a core for a while that others on the machine need."""
    if any(t.name.startswith(f"obo-{node}") and _stays(t) for t in threading.enumerate()):
        log.warning("a method is still being performed; it is left alone")
    sys.stdout.flush()
    logging.shutdown()
    _give_way()
    os._exit(code)


def _give_way() -> None:
    """To give back the memory takes the system 10 ms for 100 MB, on one core and without looking up. On Linux others go
    first; but not all of them: where a machine is kept busy, say by a statement without an end at another node, the
    process would not end for many seconds."""
    if sys.platform == "linux":
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError):  # it has ended, or it is not allowed here
                os.setpriority(os.PRIO_PROCESS, int(thread), _NICE)


def _stays(thread: threading.Thread) -> bool:
    thread.join(0.2)
    return thread.is_alive()


async def _serve(make: "Callable[[], Node]", drain: float, tell: "Callable[[Node], Coroutine[Any, Any, None]]") -> int:
    node = make()
    loop = asyncio.get_running_loop()
    collector = Collector(silent=node.timing.suspect_after)
    collector.begin()
    node.between_lives = collector.everything
    collecting = asyncio.ensure_future(collector.run())
    asked, at_once = asyncio.Event(), asyncio.Event()

    stays = asyncio.Event()  # with SIGINT: in the view it is in

    def stop(number: int) -> None:
        if number == signal.SIGINT:
            stays.set()
        (at_once if asked.is_set() or node.asked_to_leave.is_set() else asked).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    await node.start()
    ends = [asyncio.ensure_future(e.wait()) for e in (node.has_failed, asked, node.asked_to_leave)]
    ready = asyncio.ensure_future(tell(node))
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if node.failed is None:
        await _drain(node, drain, at_once, not stays.is_set())
    for waiting in (*ends, collecting):
        waiting.cancel()
    await node.stop()
    if node.failed is not None:
        why = f"{type(node.failed).__name__}: {node.failed}"
        print(f"{node.name} has failed and stopped: {why} (traceback above)", file=sys.stderr, flush=True)
        return FAULT
    print(f"{node.name} has stopped", flush=True)
    return 0


async def ready(node: "Node") -> None:
    """Say when it is a member; and who is missing, if that takes long."""
    said = ""
    while not node.joined.is_set():
        try:
            async with asyncio.timeout(WAITING):
                await node.joined.wait()
        except TimeoutError:
            if (why := node.missing()) != said:
                said = why
                waits = f"{node.name} waits on {node.address} to be a member of the group"
                print(f"{waits}: {why}", file=sys.stderr, flush=True)
    print(f"{node.name} is ready on {node.address}", flush=True)


async def _drain(node: "Node", drain: float, at_once: asyncio.Event, leaves: bool) -> None:
    log.info("draining; once more stops at once")
    draining = asyncio.ensure_future(node.drain())
    hurry = asyncio.ensure_future(at_once.wait())
    await asyncio.wait((draining, hurry), timeout=drain, return_when=asyncio.FIRST_COMPLETED)
    if leaves and draining.done() and not hurry.done():
        leaving = asyncio.ensure_future(node.leave())
        await asyncio.wait((leaving, hurry), return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
    for what in node.open() if not draining.done() else ():
        log.warning("stopped with %s", what)
    draining.cancel()
    hurry.cancel()
