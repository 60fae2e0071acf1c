"""Is the thread of a method blocked in something that is not Python? Then others may have its turn meanwhile.

``time.sleep``, a socket, a lock, a query: a method that waits there must not keep compatible ones waiting. But it must
not go on beside them either when it wakes up (turn.py says why). So:

- Blocked is a thread that sleeps inside a function of C and has used no processor time since the last look. A thread
  that only waits for the interpreter wakes up at every switch interval, and so uses some.
- A profile function (``sys.setprofile``, for this body alone) is called in the method's own thread when the function of
  C returns, before the next byte code: there it waits until it has the turn again.

A body that counts as blocked may return at any moment while its turn is being lent. So the profile function counts
first and looks then, and ``lend`` says so first and looks at the count then: at least one of them sees the other.

Where the system does not tell (no /proc, no clocks of threads), nothing counts as blocked.
"""

import dis
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CALLS = frozenset(dis.opmap[name] for name in ("CALL", "PRECALL", "CALL_FUNCTION_EX") if name in dis.opmap)
_MARGIN = 3  # a thread that waits for the interpreter wakes up this often, at least, between two looks


class Watched:
    """One body, from its begin to its end, in the thread that performs it."""

    __slots__ = ("_before", "_give", "_last", "_lent", "_looked", "_mutex", "_returns", "_thread", "_wait")

    def __init__(self, give: Callable[[], None], wait: Callable[[], None], mutex: threading.Lock) -> None:
        """``give`` and ``wait``: the turn, with what belongs to it. ``mutex``: one for all bodies of a turn."""
        self._give, self._wait = give, wait
        self._thread = threading.get_ident()
        self._returns = 0  # how often a function of C has returned
        self._lent = False
        self._mutex = mutex
        self._last: tuple[Any, ...] | None = None
        self._looked = 0.0

    def begin(self) -> None:
        self._before = sys.getprofile()  # a profiler of the user's, for all but method bodies
        sys.setprofile(self._event)

    def end(self) -> None:
        sys.setprofile(self._before)

    def _event(self, frame: Any, event: str, arg: Any) -> None:
        if event == "c_return" or event == "c_exception":
            self._returns += 1
            if self._lent:
                self._take_again()

    def _take_again(self) -> None:
        with self._mutex:  # until lend has made up its mind
            if not self._lent:
                return
            self._lent = False
        self._wait()

    def is_blocked(self) -> bool:
        """At two looks in a row, with enough time between them."""
        now = time.monotonic()
        if now - self._looked < _MARGIN * sys.getswitchinterval():
            return False
        self._looked = now
        seen, self._last = self._last, self._look()
        return self._last is not None and self._last == seen

    def _look(self) -> tuple[Any, ...] | None:
        returns = self._returns
        frame = sys._current_frames().get(self._thread)
        if self._lent or frame is None or frame.f_code.co_code[frame.f_lasti] not in _CALLS or not self._sleeps():
            return None
        used = _processor_time(self._thread)
        return None if used is None else (returns, id(frame), frame.f_lasti, used)

    def _sleeps(self) -> bool:
        task = next((t.native_id for t in threading.enumerate() if t.ident == self._thread), None)
        try:
            stat = Path(f"/proc/self/task/{task}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "S"

    def lend(self) -> None:
        """Give its turn to others; unless it has woken up meanwhile."""
        assert self._last is not None
        with self._mutex:
            self._lent = True
            if self._returns != self._last[0]:
                self._lent = False
                return
            self._give()


def _processor_time(thread: int) -> int | None:
    try:
        return time.clock_gettime_ns(time.pthread_getcpuclockid(thread))
    except (AttributeError, OSError):
        return None
