"""Reading single rows on the node's loop: to wake a thread for that takes longer than the reading.

The loop must not wait, and not be kept busy. So only a plain SELECT is read so, without functions or recursion; SQLite
is stopped after some steps; a locked file is not waited for. What was stopped, or took long, is left to threads from
then on. Of an error nothing is told here: whoever asks in a thread gets it told in full.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from objects.sql.result import Params, Result
from objects.sql.sqlite_connect import Connection
from objects.sql.statement import Statement

_STEPS: Final = 1000  # of SQLite's machine, between two looks
_LOOKS: Final = 5
_LONG: Final = 0.0005  # seconds, on the average of the last runs
_MEMORY: Final = 8  # runs
_REMEMBERED: Final = 4096  # texts

Run = Callable[[Connection, Statement, Params], Result]


class Glance:
    def __init__(self, make: Callable[[], Connection], run: Run) -> None:
        self._make, self._run = make, run
        self._connection: Connection | None = None
        self._mutex = threading.Lock()
        self._left = 0  # looks
        self._took: dict[str, float] = {}  # by text: seconds on the average; much, if it is for threads

    def open(self) -> None:
        with self._mutex:
            made = self._connection = self._make()
            self._took.clear()
            made.raw.set_progress_handler(self._look, _STEPS)

    def close(self) -> None:
        with self._mutex:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _look(self) -> bool:
        """Is it enough?"""
        self._left -= 1
        return self._left <= 0

    def read(self, statement: Statement, params: Params) -> Result | None:
        """None: it is for a thread."""
        took = self._took.get(statement.text)
        if took is None:
            took = self._begin(statement)
        if took > _LONG or not self._mutex.acquire(blocking=False):
            return None
        began = time.perf_counter()
        try:
            if self._connection is None:
                return None
            self._left = _LOOKS
            return self._run(self._connection, statement, params)
        except Exception:
            if self._left <= 0:
                took = self._took[statement.text] = 1.0
            return None
        finally:
            self._mutex.release()
            if took <= _LONG:
                seconds = min(time.perf_counter() - began, 2 * _LONG)  # one run proves nothing: the machine may be busy
                self._took[statement.text] = took + (seconds - took) / _MEMORY

    def _begin(self, statement: Statement) -> float:
        if len(self._took) >= _REMEMBERED:
            self._took.clear()
        found = self._took[statement.text] = 0.0 if _is_plain(statement) else 1.0
        return found


def _is_plain(statement: Statement) -> bool:
    text = statement.plain.lower()
    return statement.kind == "select" and text.startswith("select") and "with" not in text and not statement.calls
