"""A node as a process of its own: ``obo serve``, its log in a file, always ended."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from framework import interrupt
from framework.errors import Unavailable
from framework.testing import reaper

DRAIN = 10.0  # seconds that SIGTERM leaves to what is in flight
_LAST_LINES = 30
_PATIENCE = 60.0  # seconds for a process that was killed to be gone


_TEXT: Any = {"encoding": "utf-8", "errors": "surrogateescape"}  # paths may be anything


class Reaper:
    """The process that ends nodes when this one is gone."""

    def __init__(self) -> None:
        words = [sys.executable, "-I", "-S", reaper.__file__]
        self._process = interrupt.start(words, stdin=subprocess.PIPE, **_TEXT)
        self._mutex = threading.Lock()  # nodes may be started and ended by several threads

    def watch(self, pid: int) -> None:
        self._say(f"+{pid}\n")

    def leave(self, pid: int) -> None:
        self._say(f"-{pid}\n")

    def clear(self, directory: Path) -> None:
        """Remove a directory at the end."""
        self._say(f"{directory}\n")

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with self._mutex:
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_PATIENCE)


class NodeProcess:
    def __init__(self, name: str, config: Path, trace: Path, reaper: Reaper, traced: bool = True) -> None:
        self.name = name
        self._reaper = reaper
        self._log = trace / f"{name}.log"
        self._words = [sys.executable, "-m", "framework.cli.main", "serve", "--node", name, "--drain", str(DRAIN)]
        self._words += ["--config", str(config), *(["--trace", str(trace)] if traced else [])]
        self._log.write_bytes(b"")
        self._begin()

    def _begin(self) -> None:
        self._said = self._log.stat().st_size  # of earlier starts
        with self._log.open("ab") as log, interrupt.undisturbed():
            self._process = interrupt.start(
                self._words,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            self._reaper.watch(self.pid)
            self.alive = True

    def restart(self) -> None:
        """Another process in the place of one that has ended."""
        self._begin()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def wait_ready(self, until: float) -> None:
        """Until the node says so; Unavailable with the end of its log if it does not by ``until``."""
        ready = f"{self.name} is ready on ".encode()
        while ready not in self._log.read_bytes()[self._said :]:
            code = self._process.poll()
            if code is not None:
                raise self._failed(f"ended with {code} before it was ready")
            if time.monotonic() > until:
                raise self._failed("was not ready in time")
            time.sleep(0.02)

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def crash(self) -> None:
        self._send(signal.SIGKILL)
        self._process.wait(_PATIENCE)
        self._over()

    def pause(self) -> None:
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def ask_to_stop(self, leave: bool) -> None:
        self._send(signal.SIGTERM if leave else signal.SIGINT)

    def wait_stopped(self) -> None:
        try:
            code = self._process.wait(2 * DRAIN)
        except subprocess.TimeoutExpired:
            raise self._failed(f"did not stop within {2 * DRAIN:g} s of being asked to") from None
        self._over()
        if code:
            raise self._failed(f"ended with {code} when it was asked to stop")

    def end(self) -> None:
        """However it is: killed, and waited for."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(_PATIENCE)
        self._over()

    def _send(self, number: int) -> None:
        if self._process.poll() is not None:
            raise self._failed(f"ended by itself, with {self._process.returncode}")
        self._process.send_signal(number)

    def _over(self) -> None:
        if self.alive:
            self.alive = False
            self._reaper.leave(self.pid)

    def _failed(self, what: str) -> Unavailable:
        tail = "\n".join(self.log().splitlines()[-_LAST_LINES:]) or "(nothing)"
        return Unavailable(f"node {self.name} {what}. The end of {self._log}:\n{tail}")


def _environment() -> dict[str, str]:
    """A node finds the modules that this process finds, those of tests among them. It keeps their bytecode, as one
    does that somebody runs: to make it anew takes a third of the start, of a core that other nodes share."""
    path = os.pathsep.join(p or os.getcwd() for p in sys.path)
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**usual, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
