"""Ends node processes whose test is gone: even a test that was killed leaves nothing behind.

A process of its own. It reads ``+PID`` and ``-PID`` lines, and paths of directories; when its input ends, so has the
test. Then it kills the processes that were named and not taken back, and removes the directories. Started by path, with
nothing but the standard library.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable

TRIES = 20  # processes of a server that was killed write until they notice


def reap(lines: Iterable[str]) -> None:
    alive: set[int] = set()
    places: list[str] = []
    for line in lines:
        if line.startswith("/"):
            places.append(line.rstrip("\n"))
            continue
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
    for place in places:
        remove(place)


def remove(place: str) -> None:
    for _ in range(TRIES):
        shutil.rmtree(place, ignore_errors=True)
        if not os.path.exists(place):
            return
        time.sleep(0.5)


if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    reap(sys.stdin)
