"""The run directory: ``run.toml``, ``clients/``, ``traces/`` (docs/load.md). Made before the run, so that nobody hears
only after it that there is no place for its results."""

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from framework.errors import BadRequest
from framework.load.plan import Plan
from framework.version import __version__

FORMAT = 1
RUN = "run.toml"
ROOM = 64 * 1024  # bytes


class RunDirectory:
    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self.clients = path / "clients"
        self.traces = path / "traces"
        self.logs = path / "logs"
        self.said: dict[str, Any] = {
            "format": FORMAT,
            "workload": plan.workload,
            "ended": "failed: obo load was killed, or still runs",
            "started": 0.0,
            "calls_until": 0.0,
            "finished": 0.0,
            "settings": settings(plan),
            "versions": versions(),
            "clients": {},
            "nodes": {},
            "traced": False,
        }

    def make(self) -> None:
        """BadRequest if it is there already, or cannot be made."""
        try:
            if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
                raise BadRequest(f"--out {self.path}: it exists and is not empty; name a directory that is not there")
            for directory in (self.clients, self.traces, self.logs):
                directory.mkdir(parents=True, exist_ok=True)
            self._reserve()
            self.write()
            self._reserve()
        except OSError as error:
            raise BadRequest(f"--out {self.path}: cannot be written: {error.strerror}") from None

    def _reserve(self) -> None:
        """Room for the last word, for the case that the run fills the disk."""
        self._new.write_bytes(b" " * ROOM)

    @property
    def _new(self) -> Path:
        return self.path / f"{RUN}.new"

    def write(self) -> None:
        """``run.toml`` as it is now; whole or the old one."""
        with self._new.open("r+b" if self._new.exists() else "wb") as file:
            tomli_w.dump(self.said, file)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        self._new.replace(self.path / RUN)


def settings(plan: Plan) -> dict[str, Any]:
    """TOML has no null: what was not given is left out."""
    found = {name: value for name, value in msgspec.to_builtins(plan).items() if value is not None}
    return {**found, "loop": "open" if plan.open else "closed"}


def versions() -> dict[str, Any]:
    packages = {name: importlib.metadata.version(name) for name in ("grpcio", "msgspec", "pyarrow")}
    return {
        "obo": __version__,
        "python": platform.python_version(),
        **packages,
        "os": platform.platform(),
        "cpus": os.cpu_count() or 0,
        "implementation": sys.implementation.name,
    }
