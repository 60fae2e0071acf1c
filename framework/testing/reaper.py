"""Ends node processes whose test is gone: even a test that was killed leaves nothing behind.

A process of its own. It reads ``+PID`` and ``-PID`` lines; when its input ends, so has the test, and it kills those
that were named and not taken back. Started by path, with nothing but the standard library.
"""

import os
import signal
import sys
from collections.abc import Iterable


def reap(lines: Iterable[str]) -> None:
    alive: set[int] = set()
    for line in lines:
        pid = int(line[1:])
        if line.startswith("+"):
            alive.add(pid)
        else:
            alive.discard(pid)
    for pid in sorted(alive):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


if __name__ == "__main__":
    reap(sys.stdin)
