"""The ``obo`` command as a user runs it, in a process of its own."""

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

COMMAND = [sys.executable, "-m", "framework.cli.main"]


def surroundings(**more):
    return {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": os.getcwd(), **more}


def obo(*words, cwd=None, timeout=120, **environment):
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env=surroundings(**environment),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=timeout,
    )


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def obo_here(monkeypatch, capsys, *words):
    """The same in this process, for commands that start nothing: a process costs a second or more."""
    from framework.cli.commands import main

    monkeypatch.setattr(sys, "argv", ["obo", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    return Done(ended.value.code or 0, told.out, told.err)
