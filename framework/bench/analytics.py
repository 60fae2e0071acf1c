"""``obo bench analytics``: what the analysis of a run costs per record, on a run of one and of ten million records.

Each analysis is the command itself, ``obo analyze`` in a process of its own: start of Spark, all jobs, tables and
report. Memory is the resident size of that process and its children together, looked at several times a second.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from framework import interrupt
from framework.bench.analytics_events import WORLDS, make
from framework.errors import OboError

MILLION = 1_000_000
_LOOK = 0.25  # seconds between two looks at memory


class Plan(msgspec.Struct, frozen=True):
    small: int = MILLION
    large: int = 10 * MILLION
    cores: int = 2
    memory: str = "2g"


class Cost(msgspec.Struct):
    events: int
    seconds: float
    peak_gib: float
    violations: int


class Result(msgspec.Struct):
    ratios: dict[str, float]
    raw: dict[str, Any]
    machine: dict[str, Any] = {}


def reports() -> int:
    return 4


def measure(plan: Plan, tell: Callable[[str], None]) -> Result:
    costs = []
    with tempfile.TemporaryDirectory(prefix="obo-bench-analytics-") as base:
        for name, wanted in (("small", plan.small), ("large", plan.large)):
            path = Path(base) / name
            tell(f"making {wanted:,} events")
            events = make(path, wanted)
            tell(f"analysing {events:,} events")
            costs.append(_analyse(path, Path(base) / f"{name}-out", events, plan))
    small, large = costs
    ratio = (large.seconds / large.events) / (small.seconds / small.events)
    ratios = {
        "cost_per_event_10m_over_1m": round(ratio, 4),
        "seconds_10m": round(large.seconds * plan.large / large.events, 2),
        "peak_gib": round(max(small.peak_gib, large.peak_gib), 3),
    }
    raw = {
        "small": msgspec.to_builtins(small),
        "large": msgspec.to_builtins(large),
        "worlds": WORLDS,
        "cores": plan.cores,
    }
    return Result(ratios, raw)


def _analyse(path: Path, out: Path, events: int, plan: Plan) -> Cost:
    words = [sys.executable, "-m", "framework.cli.main", "analyze", str(path), "--out", str(out)]
    words += ["--master", f"local[{plan.cores}]", "--memory", plan.memory]
    log = out.with_suffix(".log")
    began = time.monotonic()
    with log.open("wb") as sink:
        process = interrupt.start(
            words, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, preexec_fn=_ends_with_its_parent
        )
        peak = 0
        try:
            while process.poll() is None:
                peak = max(peak, _resident(process.pid))
                time.sleep(_LOOK)
        finally:
            end(process)
    seconds = time.monotonic() - began
    if process.returncode:  # a clean trace: a violation here is a fault of the analysis
        raise OboError(f"obo analyze ended with {process.returncode}: {log.read_text(errors='replace')[-1500:]}")
    return Cost(events, round(seconds, 3), round(peak / 2**30, 3), 0)


def end(process: "subprocess.Popen[bytes]", patience: float = 10.0) -> None:
    """In order if it can be, in any case before this returns: also where a second signal interrupts the waiting."""
    try:
        if process.poll() is None:
            process.terminate()
            process.wait(patience)
    except subprocess.TimeoutExpired:
        pass  # it does not listen
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_PARENT_DIED = 1  # prctl: PR_SET_PDEATHSIG


def _ends_with_its_parent() -> None:
    """A benchmark that is killed can end nobody any more: the kernel does."""
    if _LIBC is not None:
        _LIBC.prctl(_PARENT_DIED, signal.SIGTERM)


def _resident(pid: int) -> int:
    """Bytes, of a process and all below it."""
    total, todo = 0, [pid]
    page = os.sysconf("SC_PAGE_SIZE")
    while todo:
        one = todo.pop()
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * page
            for task in Path(f"/proc/{one}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, IndexError):
            continue  # it has ended meanwhile
    return total
