"""Ctrl-C: one process decides, the others never see it.

A terminal sends SIGINT to all processes of its foreground group. The rule for each process of ``obo``:

1. *A command* (``command``) ends at once, with exit code 130 and without a word, while it is importing and when it is
   over: nothing is open then. In between (``interruptible``) Ctrl-C is a KeyboardInterrupt: the command cleans up, and
   ends with 130, whatever else goes wrong meanwhile.
2. *A child* (``start``) has a process group of its own, so the terminal does not reach it, not even while it starts.
   Its parent ends it. What a command has started and not ended by itself is killed when the command is over.
3. *In the midst of starting a process* (``undisturbed``) a signal waits: else there might be one that nobody knows.

Little is imported here at first: until it is, Ctrl-C cannot be dealt with.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import Any, Never

CODE = 128 + signal.SIGINT
_AGAIN = 0.01  # seconds

_started: "set[subprocess.Popen[Any]]" = set()  # and perhaps ended
_starting = threading.RLock()  # held while a thread starts a process, so that the end of the command knows of it


@contextmanager
def command() -> Iterator[None]:
    """All that a process does which is a command. What is in here calls ``interruptible`` when it has imported."""
    wanted = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN  # a shell starts what is in the background so
    try:
        if wanted:
            signal.signal(signal.SIGINT, _end_at_once)
            sys.unraisablehook = _unraisable
        try:
            yield
        finally:
            if wanted:
                signal.signal(signal.SIGINT, _end_at_once)
    except BaseException as error:
        if _interrupted(error):
            _flush()
            _end_at_once()  # nothing else is finished, so nothing else can go wrong, or wait for a thread
        raise
    finally:
        _kill()
        _flush()


def interruptible() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def start(words: Sequence[str], **how: "Any") -> "subprocess.Popen[Any]":
    """A child process. Ctrl-C does not reach it, and it does not outlive the command."""
    import subprocess

    with undisturbed(), _starting:
        _started.difference_update([process for process in _started if process.poll() is not None])
        process = subprocess.Popen(words, process_group=0, **how)
        _started.add(process)
    return process


@contextmanager
def undisturbed() -> Iterator[None]:
    """SIGINT and SIGTERM come after it. In other threads than the main one they never come."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    usual = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        for number in reversed(usual):
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in usual.items():  # SIGINT last: when it raises, all is as it was
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


def _end_at_once(number: int = signal.SIGINT, frame: object = None) -> "Never":
    """No exception: what is being imported, or finished, might catch it, or print it."""
    _starting.acquire()  # for good: no other thread starts a process any more
    _kill()
    os._exit(CODE)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # nobody reads it any more
            stream.flush()


def _kill() -> None:
    with _starting:
        for process in _started:
            if process.poll() is None:
                process.kill()
        for process in _started:
            process.wait()
        _started.clear()


def _interrupted(error: BaseException | None) -> bool:
    """Did it come up because of Ctrl-C, or while that was dealt with?"""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _unraisable(told: "sys.UnraisableHookArgs") -> None:
    """A KeyboardInterrupt in a ``__del__``, for example, goes no further: Python would print it and go on. So it comes
    again, a moment later."""
    if issubclass(told.exc_type, KeyboardInterrupt):
        threading.Thread(target=_again, daemon=True).start()
    else:
        sys.__unraisablehook__(told)


def _again() -> None:
    """Press Ctrl-C when the main thread has left ``_unraisable``: Python drops what is raised in there, too."""
    import time

    inside = True
    while inside:
        time.sleep(_AGAIN)
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        while frame is not None and frame.f_code is not _unraisable.__code__:
            frame = frame.f_back
        inside = frame is not None
    os.kill(os.getpid(), signal.SIGINT)
