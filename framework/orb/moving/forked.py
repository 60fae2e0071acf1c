"""A copy of the process that writes a state, as it is at this moment, into a pipe.

Fork takes milliseconds, and afterwards the system copies a page of memory only when one side writes to it. The child
is one thread in a copy of a process that had many, so it touches nothing but the state: no loop, no gRPC, no logging,
no imports; it closes all files (else peers would not see a connection end when this process dies) and ends with
``os._exit``. The parent reads from the pipe, in a thread, and ends a child that says nothing.
"""

import contextlib
import errno
import fcntl
import gc
import os
import select
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Never

from framework.errors import OboError
from framework.orb.moving.aside import aside

SILENCE = 30.0  # seconds after which a child that writes nothing is ended
_THEIRS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HEAD = struct.Struct(">BQ")  # what follows, and its length
_CHUNK, _ERROR, _END = range(3)
_PIPE = 1 << 20
NICE = 5  # the node's own work goes first
VERY_NICE = 19  # and so does that of all others
_HIGHEST = 1 << 20  # number of a file; what is above is out of reach for select and the like anyway


class CaptureFailed(OboError):
    """The state could not be written."""


def can_fork() -> bool:
    """Not where gRPC was told to follow forks: it would stop all its threads for each."""
    follows = os.environ.get("GRPC_ENABLE_FORK_SUPPORT", "").lower() in ("1", "true", "yes", "y", "t")
    return sys.platform == "linux" and not follows


class Forked:
    """``make`` is called in the child. OSError if there can be no child."""

    def __init__(
        self, what: str, make: Callable[[], Iterable[bytes]], silence: float = SILENCE, nice: int = NICE
    ) -> None:
        self._what = what
        self._silence = silence
        self._from, to = os.pipe()
        try:
            with contextlib.suppress(OSError):  # a limit of the system: then more goes to and fro
                fcntl.fcntl(to, fcntl.F_SETPIPE_SZ, _PIPE)
            with warnings.catch_warnings(), _no_signal():
                warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: threads do not survive; we know
                self.pid = os.fork()
                if self.pid == 0:
                    _write(to, make, nice)
        except OSError:
            os.close(self._from)
            os.close(to)
            raise
        os.close(to)
        self._lock = threading.Lock()
        self._reading = self._over = False

    def chunks(self) -> Iterator[bytes]:
        """In a thread. CaptureFailed if the child cannot, dies or falls silent; in the end there is no child."""
        with self._lock:
            if self._over:
                raise CaptureFailed(f"{self._what}: its state is not wanted any more")
            self._reading = True
        try:
            while True:
                kind, length = _HEAD.unpack(self._read(_HEAD.size))
                data = self._read(length)
                if kind == _ERROR:
                    raise CaptureFailed(data.decode(errors="replace"))
                if kind == _END:
                    return
                yield data
        finally:
            with self._lock:
                self._end(_bury)
                self._reading = False
                os.close(self._from)

    def close(self) -> None:
        """From any thread, also from the loop. Who reads meanwhile sees the child die."""
        with self._lock:
            if not self._over:
                self._end(_bury_later)
                if not self._reading:
                    os.close(self._from)

    def _end(self, bury: Callable[[int], None]) -> None:
        if self._over:
            return
        self._over = True
        with contextlib.suppress(ChildProcessError):  # somebody waits for all children of the process
            if os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                os.kill(self.pid, signal.SIGKILL)  # it has said all, or nobody listens any more
                bury(self.pid)

    def _read(self, length: int) -> bytes:
        parts = []
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        until = time.monotonic() + self._silence
        while length:
            if not poll.poll(max(until - time.monotonic(), 0) * 1000):
                raise CaptureFailed(
                    f"{self._what}: the process that writes its state was silent for {self._silence:g} s and was ended"
                )
            data = os.read(self._from, length)
            if not data:
                raise CaptureFailed(f"{self._what}: the process that writes its state died")
            parts.append(data)
            length -= len(data)
            until = time.monotonic() + self._silence
        return b"".join(parts)


@contextlib.contextmanager
def _no_signal() -> Iterator[None]:
    """In this thread. A signal to the child would be told to the loop of the parent, by the file that both have: Ctrl-C
    would count twice. The child takes none that the terminal sends to both."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _THEIRS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _bury(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _bury_later(pid: int) -> None:
    """A child as large as this process takes tens of milliseconds to go."""
    aside(lambda: _bury(pid))


# the child


def _write(to: int, make: Callable[[], Iterable[bytes]], nice: int) -> Never:
    try:
        gc.disable()  # nothing of the parent's is finished here
        os.nice(nice)
        _forget_all_but(to)
        try:
            for chunk in make():
                _send(to, _CHUNK, chunk)
            _send(to, _END, b"")
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
        except Exception as error:
            said = str(error) if isinstance(error, OboError) else f"{type(error).__name__}: {error}"
            _send(to, _ERROR, said.encode(errors="replace"))
    finally:
        os._exit(0)


def _forget_all_but(to: int) -> None:
    signal.set_wakeup_fd(-1)  # signals of the parent's stay blocked: it ends this process, or the pipe breaks
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in {0, 1, 2} - {to}:  # a process without stdin may have the pipe there
        os.dup2(nowhere, fd)
    os.closerange(3, to)
    os.closerange(to + 1, _HIGHEST)


def _send(to: int, kind: int, data: bytes) -> None:
    for part in (_HEAD.pack(kind, len(data)), data):
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(to, rest) :]
