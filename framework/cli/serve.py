"""``obo serve --node n1 --config cluster.toml``: a node, until SIGTERM."""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from framework.orb.config import read
from framework.orb.loops import new_loop

if TYPE_CHECKING:
    from framework.orb.node import Node

log = logging.getLogger("framework.serve")

FAULT = 70  # exit code: the framework has a fault, and its node stopped by itself (EX_SOFTWARE of sysexits.h)


def run(
    node: Annotated[str, typer.Option(metavar="NAME", envvar="OBO_NODE", help="Which of the nodes this is.")],
    config: Annotated[
        Path, typer.Option(metavar="FILE", envvar="OBO_CONFIG", help="The cluster.toml; the same at all nodes.")
    ] = Path("cluster.toml"),
    trace: Annotated[
        Path | None, typer.Option(metavar="DIR", envvar="OBO_TRACE", help="Write what happens to DIR/NAME.jsonl.")
    ] = None,
    drain: Annotated[
        float, typer.Option(envvar="OBO_DRAIN", help="Seconds that SIGTERM leaves to what is in flight.")
    ] = 10.0,
    insecure: Annotated[
        bool, typer.Option("--insecure", envvar="OBO_INSECURE", help="Leave loopback without TLS and tokens.")
    ] = False,
    bind: Annotated[
        str | None, typer.Option(metavar="HOST", envvar="OBO_BIND", help="Listen here, not at the node's address.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Serve the objects of one node. SIGTERM drains and stops; a second one stops at once."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format=f"%(asctime)s {node} %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    from framework.orb.node import Node

    cluster = read(config)
    if bind is not None:
        cluster.listen_on(bind)
    where = trace or (Path(cluster.serve.trace) if cluster.serve.trace else None)
    sys.setswitchinterval(0.0005)  # a busy method must not keep the loop waiting for its usual 5 ms
    gc.freeze()  # what is there now stays; of what comes, nearly nothing is in a cycle: look for those seldom
    gc.set_threshold(50_000, 10, 10)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        code = runner.run(_serve(lambda: Node(cluster, node, where, insecure), drain))
    _leave(node, code)
    raise typer.Exit(code)


def _leave(node: str, code: int) -> None:
    """Python waits at the end for threads that perform methods; a method that never ends must not keep the node."""
    sys.stdout.flush()
    if any(t.name.startswith(f"obo-{node}") and _stays(t) for t in threading.enumerate()):
        log.warning("a method is still being performed; it is left alone")
        logging.shutdown()
        os._exit(code)


def _stays(thread: threading.Thread) -> bool:
    thread.join(0.2)
    return thread.is_alive()


async def _serve(make: "Callable[[], Node]", drain: float) -> int:
    node = make()
    loop = asyncio.get_running_loop()
    asked, at_once = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        (at_once if asked.is_set() else asked).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    await node.start()
    print(f"{node.name} is ready on {node.address}", flush=True)
    failed = asyncio.ensure_future(node.has_failed.wait())
    await asyncio.wait((failed, asyncio.ensure_future(asked.wait())), return_when=asyncio.FIRST_COMPLETED)
    if not failed.done():
        await _drain(node, drain, at_once)
    failed.cancel()
    await node.stop()
    if node.failed is not None:
        why = f"{type(node.failed).__name__}: {node.failed}"
        print(f"{node.name} has failed and stopped: {why} (traceback above)", file=sys.stderr, flush=True)
        return FAULT
    print(f"{node.name} has stopped", flush=True)
    return 0


async def _drain(node: "Node", drain: float, at_once: asyncio.Event) -> None:
    log.info("draining; once more stops at once")
    draining = asyncio.ensure_future(node.drain())
    hurry = asyncio.ensure_future(at_once.wait())
    await asyncio.wait((draining, hurry), timeout=drain, return_when=asyncio.FIRST_COMPLETED)
    for what in node.open() if not draining.done() else ():
        log.warning("stopped with %s", what)
    draining.cancel()
    hurry.cancel()
