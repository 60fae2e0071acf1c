"""The ``obo`` command as a user runs it, in a process of its own."""

import os
import subprocess
import sys

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
