"""Work that has time, beside work that has none: what a node imports when it starts, while others serve on the machine.

A thread can have a lower priority than its process on Linux, and nobody need be allowed to raise it again: it ends, and
the thread that waited for it goes on as it was.
"""

import gc
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

NICE = 10  # about a tenth of a core where others want all of it; all of it else


#: What ``obo serve`` needs until it is a member; typer and the loop would import some of it only when they are used, so
#: nobody misses what is not there in this or another version.
_ALL = ("typer", "framework.orb.node", "typer._adapters", "framework.cli.serve", "uvloop", "inspect", "tokenize")


def import_all() -> None:
    for name in _ALL:
        with suppress(ModuleNotFoundError):
            import_module(name)


def gently(work: Callable[[], object]) -> None:
    """Returns when it is done; what it raises comes out of this. Not for work that starts threads: these would stay
    as they began. Meanwhile Python collects no garbage, and does not look at what was made then later on: modules leave
    next to none, and looking for it takes long."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            if sys.platform == "linux":
                os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + NICE)  # of this thread
            work()
        except BaseException as error:
            failed.append(error)

    collects = gc.isenabled()
    gc.disable()
    thread = threading.Thread(target=run, name="obo-gently")
    thread.start()
    thread.join()
    gc.freeze()
    if collects:
        gc.enable()
    if failed:
        raise failed[0]
