"""The nodes that an example talks to: those of ``--at host:port,...`` (or OBO_AT), else three that it starts itself.

Nodes that were started here are ``obo serve`` processes on free ports of this machine. They end with the example, also
at Ctrl-C.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from framework import BadRequest, Unavailable

ROOT = Path(__file__).parent.parent
START = 60.0  # seconds that nodes have to come up; a busy machine is slow
END = 15.0  # and to stop after SIGTERM
CONFIG = "cluster.toml"


@contextmanager
def running(**objects: str) -> Iterator[str]:
    """The addresses of a cluster with these objects, ``name="module:Class"``; else those of examples/cluster.toml."""
    at = _option()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be told to end is like Ctrl-C: clean up
    try:
        if at:
            yield at
        else:
            with held(3) as ports, TemporaryDirectory(prefix="obo-", ignore_cleanup_errors=True) as directory:
                yield from _started(Path(directory), ports, objects)
    except (BadRequest, Unavailable) as error:
        if not at:
            raise
        raise SystemExit(f"{error} (--at {at}; is it a cluster of examples/cluster.toml?)") from None
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None


def _option() -> str | None:
    text = sys.modules["__main__"].__doc__ or ""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--at",
        metavar="ADDRESSES",
        default=os.environ.get("OBO_AT"),
        help="host:port,host:port of running nodes with the objects of examples/cluster.toml; else three are started",
    )
    at: str | None = parser.parse_args().at
    return at


def _started(directory: Path, ports: Collection[int], objects: Mapping[str, str]) -> Iterator[str]:
    """Nodes for as long as the caller goes on."""
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(("n1", "n2", "n3"), ports, strict=True)}
    (directory / CONFIG).write_text(_toml(addresses, objects), encoding="utf-8")
    print("starting three nodes ...", file=sys.stderr)
    nodes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        with signals_later():  # a node that is half started could not be stopped
            for name in addresses:
                nodes[name] = _serve(directory, name)
        for name, node in nodes.items():
            _wait_for(name, node, directory)
        yield ",".join(addresses.values())
    finally:
        _stop(nodes.values())


@contextmanager
def signals_later() -> Iterator[None]:
    came: list[int] = []
    usual = {n: signal.signal(n, lambda number, _: came.append(number)) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


@contextmanager
def held(count: int) -> Iterator[list[int]]:
    """Ports that no other process gets until the block ends. Linux lets a node listen on a port that is bound here and
    gives it to nobody else; elsewhere they are only free at the beginning."""
    with ExitStack() as end:
        holders = [end.enter_context(socket.socket()) for _ in range(count)]
        for holder in holders:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", 0))
        found = [holder.getsockname()[1] for holder in holders]
        if sys.platform != "linux":
            end.close()
        yield found


def _toml(addresses: Mapping[str, str], objects: Mapping[str, str]) -> str:
    lines = ["[serve]", 'data = "data"', "[nodes]", *(f'{name} = "{address}"' for name, address in addresses.items())]
    for name, cls in objects.items():
        lines += [f"[objects.{name}]", f'class = "{cls}"']
    if not objects:
        text = (ROOT / "examples" / CONFIG).read_text(encoding="utf-8")
        lines.append(text[text.index("[objects.") :])
    return "\n".join(lines) + "\n"


def _serve(directory: Path, name: str) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "framework.cli.main", "serve", "--node", name, "--config", str(directory / CONFIG)]
    with (directory / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            words,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,  # Ctrl-C reaches this process alone, which ends its nodes
        )


def _wait_for(name: str, node: "subprocess.Popen[bytes]", directory: Path) -> None:
    until = time.monotonic() + START
    while True:
        ended = node.poll() is not None
        said = (directory / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        if f"{name} is ready" in said:
            return
        if ended or time.monotonic() > until:
            raise SystemExit(f"{name} {'has ended' if ended else f'is not ready after {START:g} s'}:\n{said.rstrip()}")
        time.sleep(0.05)


def _stop(nodes: "Collection[subprocess.Popen[bytes]]") -> None:
    try:
        for node in nodes:
            node.terminate()
        for node in nodes:
            node.wait(END)
    except subprocess.TimeoutExpired:
        pass
    finally:  # also at a second Ctrl-C
        for node in nodes:
            node.kill()
            node.wait()
