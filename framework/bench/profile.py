"""Where the time goes: py-spy looks at each process of a row while the row runs once more.

The run is an extra one: a process that is looked at is slower, and its figures do not count."""

import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from framework import interrupt
from framework.bench.processes import Process
from framework.bench.rpc import Progress, Rpc
from framework.errors import BadRequest

SUFFIX = {"flamegraph": "svg", "speedscope": "speedscope.json", "raw": "txt"}
RATE = 200  # looks in a second
START, END = 1.0, 30.0


def find() -> str:
    """The py-spy of this environment, else of the PATH."""
    beside = shutil.which("py-spy", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("py-spy")
    if found is None:
        raise BadRequest("--profile needs py-spy: pip install 'obo[bench]', or pip install py-spy")
    return found


def profile(bench: Rpc, directory: Path, form: str, seconds: float, progress: Progress) -> list[Path]:
    """One file for each row and process: ROW-PROCESS.svg, for example."""
    spy = find()
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for system, row in bench.plan.rows():
        progress(f"profile: {system} {row}")
        with ExitStack() as stack:
            spies = [
                stack.enter_context(_Spy(spy, p, directory / f"{row}-{p.name}.{SUFFIX[form]}", form, seconds))
                for p in bench.systems[system].processes
            ]
            bench.once(system, row, bench.plan.payloads[0], seconds + START)
            for each in spies:
                fault = each.wait()
                if fault:
                    bench.notes.append(f"no profile of {each.name} during {row}: {fault}")
                else:
                    written.append(each.file)
    return written


class _Spy:
    """py-spy on one process; it ends with the ``with`` at the latest."""

    def __init__(self, spy: str, process: Process, file: Path, form: str, seconds: float) -> None:
        self.name = process.name
        self.file = file
        words = [spy, "record", "--pid", str(process.pid), "--output", str(file), "--format", form]
        words += ["--duration", str(max(1, round(seconds))), "--rate", str(RATE), "--threads"]
        self._process = interrupt.start(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
        self._seconds = seconds

    def __enter__(self) -> "_Spy":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def wait(self) -> str:
        """Empty, or what was wrong."""
        try:
            _, text = self._process.communicate(timeout=self._seconds + END)
        except subprocess.TimeoutExpired:
            return "py-spy did not end"
        if self._process.returncode == 0:
            return ""
        last = text.strip().splitlines()
        return last[-1] if last else f"py-spy ended with {self._process.returncode}"
