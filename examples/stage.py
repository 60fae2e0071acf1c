"""A stage for demos: nodes that can be killed, stopped, started and cut off, words for the audience, and a verdict.

    with stage(__doc__, db="objects.sql:Database") as s:
        s.say("Three nodes are up.")
        s.kill("n2")
        s.check(answer == 42, "the answer is 42")

Each check is told; the program ends with 1 if one did not hold. Everything that was started is ended, also at Ctrl-C.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from examples.nodes import END, ROOT, START, held, signals_later
from examples.wire import Wire
from framework import OboError, Orb, connect

WIDTH = 100
PATIENCE = 60.0  # seconds for whatever must come true; a bound, not a measure
LOOK = 0.1


class Stage:
    """Three nodes, or those of ``--at``, which are only looked at."""

    def __init__(self, directory: Path, objects: Mapping[str, str], at: str | None) -> None:
        self.directory = directory
        self.failed = 0
        self.own = at is None
        self._objects = objects
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._wires: dict[tuple[str, str], Wire] = {}
        self._began = time.monotonic()
        self._end = ExitStack()
        if at is None:
            names, ports = ("n1", "n2", "n3"), self._end.enter_context(held(3))
            self.addresses = {n: f"127.0.0.1:{port}" for n, port in zip(names, ports, strict=True)}
        else:
            self.addresses = {a.partition(":")[0]: a for a in at.split(",")}
            if len(self.addresses) < at.count(",") + 1:  # one host, many ports
                self.addresses = {a: a for a in at.split(",")}
        self.names = tuple(self.addresses)

    # words

    def say(self, text: str) -> None:
        """With the seconds since the beginning."""
        head = f"{time.monotonic() - self._began:5.1f} s  "
        self._print(text, head)

    def check(self, holds: bool, text: str) -> None:
        self.failed += not holds
        self._print(text, "      ✓  " if holds else "      ✗  NOT SO: ")

    def _print(self, text: str, head: str) -> None:
        room = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
        lines = textwrap.wrap(text, room, initial_indent=head, subsequent_indent=" " * 9, break_on_hyphens=False)
        print("\n".join(lines), flush=True)

    # nodes

    def open(self) -> None:
        """Start all of them, with a wire between each two."""
        for here in self.names:
            for there in self.names:
                if here != there:
                    self._wires[here, there] = Wire(int(self.addresses[there].rpartition(":")[2]))
        with signals_later():  # a node that is half started could not be stopped
            for name in self.names:
                self._launch(name)
        for name in self.names:
            self.wait_ready(name)

    def close(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        until = time.monotonic() + END
        for process in self._processes.values():
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for wire in self._wires.values():
            wire.close()
        self._end.close()

    def _launch(self, name: str) -> None:
        file = self.directory / f"{name}.toml"
        file.write_text(self._toml(name), encoding="utf-8")
        words = [sys.executable, "-m", "framework.cli.main", "serve", "--node", name, "--config", str(file)]
        path = os.pathsep.join([str(self.directory), str(ROOT), os.environ.get("PYTHONPATH", "")])
        with (self.directory / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                words,
                cwd=self.directory,
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,  # Ctrl-C reaches this process alone, which ends its nodes
            )

    def _toml(self, name: str) -> str:
        lines = ["[serve]", 'data = "data"', "[nodes]"]
        for other, address in self.addresses.items():
            lines.append(f'{other} = "{address if other == name else self._wires[name, other].address}"')
        for thing, cls in self._objects.items():
            lines += [f"[objects.{thing}]", f'class = "{cls}"']
        return "\n".join(lines) + "\n"

    def wait_ready(self, name: str) -> None:
        """Until a node that was started is a member of the group."""
        log, until = self.directory / f"{name}.log", time.monotonic() + START
        while f"{name} is ready" not in (said := log.read_text(encoding="utf-8", errors="replace")):
            if self._processes[name].poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{name} does not start:\n{said.rstrip()}")
            time.sleep(LOOK / 2)

    def kill(self, name: str) -> None:
        """As by a power cut."""
        self._processes[name].kill()
        self._processes[name].wait()

    def stop(self, name: str) -> None:
        """As an administrator does it: it answers what is under way, and leaves in order."""
        self._processes[name].terminate()
        self._processes[name].wait(END)

    def start(self, name: str) -> None:
        """Until it is a member again, and has the states of its replicas."""
        self._launch(name)
        self.wait_ready(name)
        self.wait_whole()

    def cut_off(self, name: str) -> None:
        """No wire between this one and the others."""
        for pair, wire in self._wires.items():
            if name in pair:
                wire.cut()

    def heal(self) -> None:
        for wire in self._wires.values():
            wire.mend()

    # clients

    def connect(self, *first: str, timeout: float = 30.0, only: bool = False) -> Orb:
        """A client of these nodes; of the others, too, for the case that these are gone, unless it wants no other."""
        wanted = [*first, *(n for n in self.names if n not in first and not only)]
        where = [self.addresses[n] for n in wanted]
        credentials = os.environ.get("OBO_CREDENTIALS")
        return connect(where, timeout, credentials=credentials) if credentials else connect(where, timeout)

    def status(self) -> dict[str, dict[str, Any]]:
        """What the nodes say of themselves (``obo status --json``); who does not answer is left out."""
        words = [
            sys.executable,
            "-m",
            "framework.cli.main",
            "status",
            "--json",
            "--at",
            ",".join(self.addresses.values()),
        ]
        done = subprocess.run(words, capture_output=True, encoding="utf-8", check=False, cwd=self.directory)
        told = [json.loads(line) for line in done.stdout.splitlines()]
        return {one["node"]: one for one in told if "error" not in one}

    def wait_whole(self, *without: str) -> bool:
        """Until all but these are members of one view, with all their states."""
        wanted = sorted(n for n in self.names if n not in without) if self.own else []
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            told = {n: s for n, s in self.status().items() if n not in without}
            groups = [sorted(s["group"]["members"]) for s in told.values()]
            ready = all(s["group"]["state"] == "steady" and not s["transfers"]["unready"] for s in told.values())
            if (
                ready
                and len(told) == len(self.names) - len(without)
                and all(g == (wanted or groups[0]) for g in groups)
            ):
                return True
            time.sleep(LOOK)
        return False


@contextmanager
def stage(
    about: str | None, at: bool = False, prepare: Mapping[str, str] = MappingProxyType({}), **objects: str
) -> Iterator[Stage]:
    """A stage with these objects, ``name="module:Class"``, on three nodes. ``at``: it can also use running ones.

    ``prepare``: files, by name, in a directory where nodes find modules."""
    where = _options(about or "", at)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be told to end is like Ctrl-C: clean up
    with TemporaryDirectory(prefix="obo-", ignore_cleanup_errors=True) as directory:
        s = Stage(Path(directory), objects, where)
        for name, text in prepare.items():
            (s.directory / name).write_text(text, encoding="utf-8")
        try:
            if s.own:
                print("starting three nodes ...", file=sys.stderr)
                s.open()
            yield s
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            raise SystemExit(130) from None
        except OboError as error:
            raise SystemExit(f"the demo has failed: {type(error).__name__}: {error}") from None
        finally:
            s.close()
    print("All of it holds." if not s.failed else f"{s.failed} of it did not hold.", flush=True)
    raise SystemExit(1 if s.failed else 0)


def _options(about: str, at: bool) -> str | None:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    if at:
        parser.add_argument(
            "--at",
            metavar="ADDRESSES",
            default=os.environ.get("OBO_AT"),
            help="host:port,host:port of running nodes (OBO_CREDENTIALS for TLS and token); else three are started",
        )
    given: str | None = getattr(parser.parse_args(), "at", None)
    return given
