"""Follows a guide as a reader would: writes its files, types its commands, and compares what comes with what it says.

Blocks are told apart by their language:

- ``python`` and ``toml`` that begin with ``# NAME`` are files; other ``python`` blocks are run;
- ``pycon`` is one session of Python for the whole guide, judged by doctest (``...`` stands for anything);
- ``console`` has commands after ``$`` and what they print; ``obo serve ... &`` goes on until ``kill``;
- blocks without a language are not run.

Guides name the ports 7401 to 7403. Here free ones take their place.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.cli.run_obo import COMMAND, surroundings

ROOT = Path(__file__).parent.parent
NAMED = ("7401", "7402", "7403")
DONE_BY_THE_TEST = ("make setup", ". .venv/bin/activate")
PATIENCE = 150  # seconds; a bound, not a measure
MATCH = doctest.ELLIPSIS
RAN = ("python", "toml", "pycon", "console", "")


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks(text):
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M)
    return [Block(m[1], m[2], text[: m.start()].count("\n") + 1) for m in found]


class Node:
    """``obo serve`` in the background; what it says is in a file."""

    def __init__(self, name, log, how):
        self.name, self.log = name, log
        with log.open("wb") as out:
            self.process = subprocess.Popen(**how, stdout=out, stderr=subprocess.STDOUT)

    def says(self, line):
        until = time.monotonic() + PATIENCE
        while line not in self.log.read_text().splitlines():
            assert self.process.poll() is None and time.monotonic() < until, f"no {line!r}: {self.log.read_text()}"
            time.sleep(0.05)


class Reader:
    def __init__(self, guide, directory, ports):
        self.guide = guide
        self.directory = directory
        self.ports = dict(zip(NAMED, map(str, ports), strict=True))
        self.names = {"__name__": "guide"}
        self.environment = {"COLUMNS": "100"}
        self.nodes = []

    def follow(self):
        for block in blocks((ROOT / self.guide).read_text()):
            assert block.language in RAN, f"{self.guide}:{block.line}: nobody runs {block.language}"
            if block.language:
                getattr(self, block.language)(self._with_ports(block.text), block.line)
        assert not self.nodes, "the guide says how to stop the nodes"

    def _with_ports(self, text):
        for named, port in self.ports.items():
            text = text.replace(named, port)
        return text

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(self._with_ports(text))

    def end(self):
        for node in self.nodes:
            node.process.kill()
            node.process.wait(PATIENCE)

    # blocks

    def python(self, text, line):
        if not self._file(text):
            exec(compile("\n" * line + text, self.guide, "exec"), self.names)

    def toml(self, text, line):
        self._file(text)

    def _file(self, text):
        name = re.match(r"# (\w+\.\w+)", text)
        if name:
            self.write(name[1], text)
        return name

    def pycon(self, text, line):
        test = doctest.DocTestParser().get_doctest(text, self.names, self.guide, self.guide, line)
        said = []
        doctest.DocTestRunner(optionflags=MATCH, verbose=False).run(test, out=said.append, clear_globs=False)
        self.names.update(test.globs)
        assert not said, "".join(said)

    def console(self, text, line):
        for command, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
            self._command(command, wanted, f"{self.guide}:{line}: {command}")

    def _command(self, command, wanted, where):
        if command in DONE_BY_THE_TEST:
            return
        words = shlex.split(command, comments=True)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.environment[name] = value
        elif words[-1] == "&":
            name = words[words.index("--node") + 1]
            self.nodes.append(Node(name, self.directory / f"{name}.log", self._run_as(words[:-1])))
            for line in wanted.splitlines():  # below the last of them are the words of all
                next(n for n in self.nodes if n.name == line.split()[0]).says(line)
        elif words[0] == "kill":
            self._kill(len(words) - 1)
        else:
            got = self._output(words)
            assert doctest.OutputChecker().check_output(wanted, got, MATCH), f"{where} prints\n{got}\nnot\n{wanted}"

    def _run_as(self, words):
        programs = {"obo": COMMAND, "python": [sys.executable]}
        assert words[0] in programs, f"{self.guide}: what is {words[0]}?"
        return {
            "args": [*programs[words[0]], *words[1:]],
            "cwd": self.directory,
            "env": {**surroundings(PYTHONPATH=os.pathsep.join((str(self.directory), str(ROOT)))), **self.environment},
        }

    def _output(self, words):
        done = subprocess.run(
            **self._run_as(words),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())  # tables end in blanks

    def _kill(self, count):
        assert count == len(self.nodes)
        for node in self.nodes:
            node.process.terminate()
        for node in self.nodes:
            assert node.process.wait(PATIENCE) == 0, node.log.read_text()
        self.nodes.clear()
