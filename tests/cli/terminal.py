"""A terminal for tests: type, and wait until something is seen. What is seen is a screen, not the bytes."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from tests.cli.run_obo import COMMAND, surroundings

PATIENCE = 60.0  # seconds; long, for machines that are busy
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?<>=]*[A-Za-z]|\][^\x07]*\x07|[=>()][A-Z0-9]?|[A-Z78])")


class Terminal:
    """``obo WORDS`` in a terminal of its own. Use it in a ``with``."""

    def __init__(self, *words, columns=100, **environment):
        self._words = [*COMMAND, *map(str, words)]
        self._columns = columns
        self._environment = surroundings(TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1", **environment)
        self.text = ""
        self._seen = 0  # where the next ``sees`` begins

    def __enter__(self):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self._columns, 0, 0))
        self._process = subprocess.Popen(
            self._words,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=self._environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C reaches it
        )
        os.close(slave)
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def types(self, text):
        os.write(self._master, text.encode())

    def _read(self, seconds):
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is gone
            return False
        self.text += _ESCAPE.sub("", data.decode(errors="replace")).replace("\r", "")
        return bool(data)

    def sees(self, wanted):
        """Wait for a text that was not seen before."""
        until = time.monotonic() + PATIENCE
        while wanted not in self.text[self._seen :]:
            assert time.monotonic() < until, f"{wanted!r} did not come; the terminal shows:\n{self.text}"
            assert self._read(0.2) or wanted in self.text[self._seen :], f"ended without {wanted!r}:\n{self.text}"
        self._seen = self.text.index(wanted, self._seen) + len(wanted)

    def waits(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._read(left)

    def ends(self):
        """The exit code."""
        until = time.monotonic() + PATIENCE
        while self._read(0.2):
            assert time.monotonic() < until, f"it does not end:\n{self.text}"
            if self._process.poll() is not None:
                break
        return self._process.wait(PATIENCE)
