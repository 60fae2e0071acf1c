"""A process that one talks to by lines, on its standard input and output: started, asked, always ended."""

import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from framework import interrupt
from framework.errors import Unavailable

READY = 30.0  # seconds in which a process must say that it is
END = 5.0


class Child:
    """Use it in a ``with``. Ctrl-C reaches its parent alone, which then ends it."""

    def __init__(self, name: str, words: Sequence[str], logs: Path) -> None:
        self.name = name
        self.over = False
        self._log = logs / f"{name}.log"
        self._words = words

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = interrupt.start(
                [sys.executable, "-m", *self._words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
            )
        assert self._process.stdout is not None and self._process.stdin is not None
        self._stdin = self._process.stdin
        self._said: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _listen(self, stream: IO[str]) -> None:
        for line in stream:
            self._said.put(line.rstrip())
        self._said.put(None)

    def line(self, seconds: float = READY) -> str:
        """The next line that it says."""
        try:
            line = self._said.get(timeout=seconds)
        except queue.Empty:
            raise Unavailable(f"{self.name} has said nothing for {seconds:g} s; its log ends: {self.tail()}") from None
        if line is None:
            raise Unavailable(f"{self.name} has ended; its log ends: {self.tail()}")
        return line

    def heard(self) -> list[str]:
        """The lines that it has said by now; when it has said its last one, ``over`` is set."""
        lines: list[str] = []
        while not self.over:
            try:
                line = self._said.get_nowait()
            except queue.Empty:
                break
            if line is None:
                self.over = True
            else:
                lines.append(line)
        return lines

    def say(self, text: str) -> None:
        """A line for it to read; nothing if it has ended: ``line`` says how."""
        try:
            self._stdin.write(text + "\n")
            self._stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def hang_up(self) -> None:
        """Nothing more is said to it."""
        try:
            self._stdin.close()
        except BrokenPipeError:
            pass

    @property
    def code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> bool:
        """Has it ended by then?"""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def tail(self) -> str:
        """The end of its log."""
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        return text[-500:] or "(empty)"
