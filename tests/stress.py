"""Find flaky tests on purpose: ``make test-stress``, or ``python -m tests.stress``.

The tests of the folders ``REAL`` use processes, sockets and the clock. This program runs them in rounds, with three
times as many workers as the machine has cores. Each round has a seed of its own for the order of the tests and for
hypothesis. The end is a table of the tests that failed at least once.

``out/stress/<start>/`` keeps for each failure its traceback and the log of the test, and for each round the output of
pytest and the temporary files of the tests that failed. Each file begins with the command that repeats the round.

This module is also the plugin of pytest that shuffles the tests of a round and records how each of them ended.
"""

import argparse
import ctypes
import datetime
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("orb", "cluster", "load", "net", "trace", "bench", "examples", "cli", "store", "objects")
REAL = [f"tests/{folder}" for folder in FOLDERS] + ["tests/test_readme.py", "tests/test_testing.py"]
DENSITY = 3  # workers for each core
HANG = 600.0  # seconds without the end of any test
GRACE = 10.0  # seconds for processes to end by themselves
COPY = re.compile(r"-?copy\d+|\[copy\d+\]")


# the plugin


def pytest_addoption(parser):
    group = parser.getgroup("stress")
    group.addoption("--stress-record", help="the file to which the ends of tests are written")
    group.addoption("--stress-seed", type=int, help="the order of the tests")
    group.addoption("--stress-copies", type=int, default=1, help="how often each test runs")


def pytest_configure(config):
    record = config.getoption("--stress-record")
    if record and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(record)))


class Recorder:
    """Write one line of JSON for each test that begins, ends or fails. It runs in the process that has the workers."""

    def __init__(self, path):
        self.file = path.open("w", buffering=1)

    def tell(self, kind, test, **more):
        self.file.write(json.dumps({"kind": kind, "test": test, **more}) + "\n")

    def pytest_runtest_logstart(self, nodeid):
        self.tell("begin", nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.fail(report)
        if report.when == "call":
            self.tell("run", report.nodeid)

    def pytest_runtest_logfinish(self, nodeid):
        self.tell("end", nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self.fail(report)

    def fail(self, report):
        crash = getattr(report.longrepr, "reprcrash", None)
        text = report.longreprtext
        why = crash.message if crash else next((line for line in reversed(text.splitlines()) if line.strip()), "")
        for title, content in report.sections:
            text += f"\n--- {title}\n{content}"
        self.tell("fail", report.nodeid, why=why, text=text, when=getattr(report, "when", "collect"))


@pytest.fixture
def stress_copy(request):
    return request.param


def pytest_generate_tests(metafunc):
    copies = metafunc.config.getoption("--stress-copies")
    if copies > 1:
        metafunc.fixturenames.append("stress_copy")
        metafunc.parametrize("stress_copy", range(copies), indirect=True, ids=lambda i: f"copy{i}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Shuffle the modules, and the tests within each: what a module shares is still made once."""
    seed = config.getoption("--stress-seed")
    if seed is None:
        return
    chance = random.Random(seed)
    modules = defaultdict(list)
    for item in items:
        modules[item.nodeid.split("::")[0]].append(item)
    order = list(modules)
    chance.shuffle(order)
    for tests in modules.values():
        chance.shuffle(tests)
    items[:] = [item for module in order for item in modules[module]]


# the program


@dataclass
class Failure:
    seed: int
    why: str
    log: Path


@dataclass
class Outcome:
    """What is known of one test after all rounds."""

    runs: int = 0
    failures: list[Failure] = field(default_factory=list)


class Stop(Exception):
    """The time is over, or a person wants the end."""


class Stress:
    def __init__(self, options):
        self.options = options
        self.outcomes = defaultdict(Outcome)
        self.until = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
        self.directory = options.out / datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        self.directory.mkdir(parents=True)
        self.seeds = random.Random(options.seed or None)
        self.troubles = []  # of a round as a whole

    def run(self):
        for number in range(1, self.options.rounds + 1):
            seed = self.options.seed if number == 1 and self.options.seed else self.seeds.randrange(1, 2**31)
            self.round(number, seed)

    def round(self, number, seed):
        directory = self.directory / f"round-{number}"
        directory.mkdir()
        temporary = Path(tempfile.mkdtemp(prefix="obo-stress-"))  # short: sockets are below it
        words = [sys.executable, "-m", "pytest", "-p", "tests.stress", "-p", "no:cacheprovider", "-m", ""]
        words += ["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
        words += ["-n", str(self.options.workers), "--dist", "load", "-rs"]
        words += [f"--stress-seed={seed}", f"--hypothesis-seed={seed}", f"--stress-copies={self.options.copies}"]
        words += ["-o", "testpaths=" + " ".join(REAL)]
        words += ["-o", f"faulthandler_timeout={self.options.hang * 0.9:.0f}"]
        repeat = shlex.join([*words, *self.options.tests])
        words += ["-o", "tmp_path_retention_policy=failed", f"--basetemp={temporary / 'tests'}"]
        words += [f"--stress-record={directory / 'record.jsonl'}", *self.options.tests]
        say(f"round {number} of {self.options.rounds}, seed {seed}, {self.options.workers} workers")
        began = time.monotonic()
        records = Records(directory, repeat, seed, self.outcomes)
        with (directory / "pytest.log").open("w") as log:
            log.write(f"{repeat}\n\n")
            log.flush()
            # a session of its own: Ctrl-C reaches this program alone, which then ends the round
            process = subprocess.Popen(
                words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        try:
            if self.follow(process, records) not in (0, 1, None):
                tail = (directory / "pytest.log").read_text().strip().splitlines()[-1]
                self.troubles.append(f"round {number}: pytest ended with {process.returncode}: {tail}")
            if process.poll() is not None:
                self.leftovers(records)
        finally:
            end_all(process)
            records.read()
            keep(temporary, directory)
            seconds = time.monotonic() - began
            say(f"round {number}: {records.ran} tests ran, {records.failed} failures, {seconds:.0f} s")

    def follow(self, process, records):
        """Take in what is recorded until the round ends; return the exit code of pytest, or None after a hang."""
        quiet_since = time.monotonic()
        while process.poll() is None:
            time.sleep(0.2)
            now = time.monotonic()
            if records.read():
                quiet_since = now
            if now > self.until:
                raise Stop(f"{self.options.minutes:g} minutes are over")
            if now > quiet_since + self.options.hang:
                why = f"has not ended, and no test has for {self.options.hang:g} s"
                for test in sorted(records.open) or ["pytest"]:
                    records.fail(test, why, "see pytest.log")
                return None
        records.read()
        return process.returncode

    def leftovers(self, records):
        """Processes that outlive the round: each names the test during which it was started."""
        left = wait_for(psutil.Process().children(recursive=True), GRACE)
        for process in left:
            try:
                test = process.environ().get("PYTEST_CURRENT_TEST", "").rsplit(" (", 1)[0]
                words = shlex.join(process.cmdline())
            except psutil.Error:
                continue
            records.fail(test or "(no test)", f"left a process behind: {words}", f"process {process.pid}: {words}")

    def table(self):
        failed = {test: o for test, o in self.outcomes.items() if o.failures}
        if not failed and not self.troubles:
            ran = sum(o.runs for o in self.outcomes.values())
            say(f"{len(self.outcomes)} tests, {ran} runs, no failure")
        for test, outcome in sorted(failed.items(), key=lambda pair: -len(pair[1].failures)):
            say(f"\n{test}\n  failed in {len(outcome.failures)} of {max(outcome.runs, len(outcome.failures))} runs")
            for why, alike in group(outcome.failures).items():
                say(f"  {len(alike)} x {why}")
                for one in alike:
                    say(f"      seed {one.seed:<10}  {os.path.relpath(one.log)}")
        if failed:
            say(f"\n{len(failed)} of {len(self.outcomes)} tests failed at least once")
        for trouble in self.troubles:
            say(trouble)
        return bool(failed or self.troubles)


class Records:
    """What the plugin has written about one round so far."""

    def __init__(self, directory, repeat, seed, outcomes):
        self.directory, self.repeat, self.seed, self.outcomes = directory, repeat, seed, outcomes
        self.path = directory / "record.jsonl"
        self.at = 0
        self.open = set()
        self.ran = self.failed = 0

    def read(self):
        """Take in what is new; return whether a test has ended."""
        ended = False
        if not self.path.exists():
            return ended
        with self.path.open("rb") as file:
            file.seek(self.at)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.at += len(line)
                ended |= self.take(**json.loads(line))
        return ended

    def take(self, kind, test, why="", text="", when=""):
        if kind == "begin":
            self.open.add(test)
        elif kind == "run":
            self.ran += 1
            self.outcomes[COPY.sub("", test)].runs += 1
        elif kind == "fail":
            self.fail(test, why if when == "call" else f"{when}: {why}", text)
        elif kind == "end":
            self.open.discard(test)
            return True
        return False

    def fail(self, test, why, text):
        self.failed += 1
        first = next((line.strip() for line in why.splitlines() if line.strip()), "?")
        log = self.directory / (re.sub(r"[^\w.-]+", "-", test)[-150:] + f".{self.failed}.log")
        log.write_text(f"{self.repeat}\n\n{test}\n{why}\n\n{text}\n")
        self.outcomes[COPY.sub("", test)].failures.append(Failure(self.seed, first, log))
        say(f"  {test}: {first[:200]}")


def group(failures):
    """By their first lines, in which numbers may differ."""
    alike = {}
    for failure in failures:
        key = re.sub(r"\d+", "0", failure.why)[:120]
        alike.setdefault(key, (failure.why[:240], []))[1].append(failure)
    return dict(alike.values())


def end_all(process):
    """End pytest as Ctrl-C does, then all that is left below this process."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    end_children()


def end_children():
    left = psutil.Process().children(recursive=True)
    for child in left:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            pass
    wait_for(left, GRACE)


def wait_for(processes, seconds):
    """Return the processes that have not ended after some seconds."""
    return [p for p in psutil.wait_procs(processes, timeout=seconds)[1] if p.is_running()]


def adopt():
    """Become the parent of each process below this one that loses its own: so none escapes."""
    set_child_subreaper = 36
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1)


def keep(temporary, directory):
    """Move what failed tests have left to the logs, and remove the rest."""
    for path in sorted(temporary.rglob("*"), reverse=True):
        if path.is_symlink():
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    if (temporary / "tests").exists():
        shutil.move(temporary / "tests", directory / "files")
    shutil.rmtree(temporary, ignore_errors=True)


def say(line):
    print(line, flush=True)


def interrupted(number, frame):
    """Only the first time: the end is on its way, and takes no longer than ``GRACE`` allows."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description="Find flaky tests.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=0.0, help="the longest time for all rounds; 0: no bound")
    parser.add_argument("--workers", type=int, default=DENSITY * (os.cpu_count() or 1))
    parser.add_argument("--copies", type=int, default=1, help="how often a round runs each test")
    parser.add_argument("--seed", type=int, default=0, help="of the first round; 0: a new one")
    parser.add_argument("--hang", type=float, default=HANG, help="seconds without the end of a test that end a round")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "stress")
    parser.add_argument("tests", nargs="*", help="after --: paths, -k EXPRESSION and other words for pytest")
    options = parser.parse_args()
    if min(options.rounds, options.workers, options.copies) < 1 or options.minutes < 0 or options.hang <= 0:
        parser.error("rounds, workers, copies and hang are positive, minutes is not negative")
    return options


def main():
    options = arguments()
    adopt()
    stress = Stress(options)
    code = 0
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, interrupted)
        stress.run()
    except Stop as stop:
        say(str(stop))
    except KeyboardInterrupt:
        say("interrupted")
        code = 130
    finally:
        end_children()
    return 1 if stress.table() else code


if __name__ == "__main__":
    sys.exit(main())
