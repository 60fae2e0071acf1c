"""``obo load`` as a process, to be disturbed while it runs."""

import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from tests.cli.run_obo import COMMAND, surroundings

PATIENCE = 60.0


@contextmanager
def loading(run, *words, **environment):
    """The command, once its clients have calls on record; and whether it has ended."""
    words = [*COMMAND, "load", *map(str, words), "--out", str(run)]
    process = subprocess.Popen(
        words, env=surroundings(**environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )
    try:
        until = time.monotonic() + PATIENCE
        processes = 2 if "--processes" in words else 1
        while sum(p.stat().st_size > 20_000 for p in run.glob("clients/open-*.arrows")) < processes:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def children(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def clients_of(pid):
    """Client processes of a load."""
    return [p for p in children(pid) if b"framework.load.worker" in Path(f"/proc/{p}/cmdline").read_bytes()]


def nodes_of(pid):
    found = {}
    for child in children(pid):
        words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        if b"serve" in words:
            found[words[words.index(b"--node") + 1].decode()] = child
    return found
