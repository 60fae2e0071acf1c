"""Functions of SQLite that would differ from replica to replica: time and chance come from the request instead.

An override acts wherever the function is called, in a column default or a trigger, too. The date functions are SQLite's
own, called with the time of the request where the arguments say 'now' or nothing at all. With arguments they are
registered as deterministic, which expression indexes and generated columns want; without, and CURRENT_TIMESTAMP, they
are not, and SQLite itself refuses them there. A modifier that depends on the machine's time zone is refused.
"""

import datetime as dt
import sqlite3
from collections.abc import Callable
from hashlib import shake_128
from typing import Any, Final, Protocol
from uuid import UUID

from objects.sql.errors import ProgrammingError

#: name -> how many arguments come before the first time value
_DATES: Final = {"date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1, "timediff": 0}
_SUBSECOND: Final = ("subsec", "subsecond")
_LOCAL: Final = ("localtime", "utc")
_LONGEST_BLOB: Final = 1 << 26


class Given(Protocol):
    """What a request brings: the same on every replica."""

    def now(self) -> float: ...
    def random(self) -> float: ...
    def uuid(self) -> UUID: ...


class Functions:
    """The overrides on one connection. ``complaint`` is what one of them raised: SQLite forgets it."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._native = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self.complaint: Exception | None = None

    def install(self, connection: sqlite3.Connection) -> None:
        for name, before in _DATES.items():
            if self._has(name):
                date = self._guarded(self._date(name, before))
                connection.create_function(name, -1, date, deterministic=True)
                connection.create_function(name, before, date)  # without a time: it is now
        for name, form in (("timestamp", "%Y-%m-%d %H:%M:%S"), ("date", "%Y-%m-%d"), ("time", "%H:%M:%S")):
            connection.create_function(f"current_{name}", 0, self._guarded(self._current(form)))
        connection.create_function("random", 0, self._guarded(self._random))
        connection.create_function("randomblob", 1, self._guarded(self._randomblob))

    def close(self) -> None:
        self._native.close()

    def _has(self, name: str) -> bool:
        return bool(self._native.execute("SELECT 1 FROM pragma_function_list WHERE name = ?", (name,)).fetchone())

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            try:
                return function(*args)
            except Exception as error:
                self.complaint = error
                raise

        return call

    def _current(self, form: str) -> Callable[[], str]:
        return lambda: dt.datetime.fromtimestamp(self._given.now(), dt.UTC).strftime(form)

    def _date(self, name: str, before: int) -> Callable[..., Any]:
        times = 2 if name == "timediff" else 1

        def call(*args: Any) -> Any:
            values = list(args)
            if len(values) == before:
                values.append("now")
            if len(values) > before and _word(values[before]) in _SUBSECOND:
                values.insert(before, "now")
            for place in range(before, min(before + times, len(values))):
                if _word(values[place]) == "now":
                    values[place] = self._moment()
            for value in values[before + times :]:
                if _word(value) in _LOCAL:
                    raise ProgrammingError(
                        f"{name}(..., '{value}') depends on the time zone of the machine: keep UTC, and let the caller "
                        "turn it into local time"
                    )
            marks = ", ".join("?" * len(values))
            return self._native.execute(f"SELECT {name}({marks})", values).fetchone()[0]

        return call

    def _moment(self) -> str:
        """To the millisecond, as SQLite itself has it."""
        return dt.datetime.fromtimestamp(self._given.now(), dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

    def _bits(self, count: int) -> int:
        """A draw has 53 bits, of which 32 are taken."""
        found = 0
        for _ in range(-(-count // 32)):
            found = found << 32 | int(self._given.random() * (1 << 32))
        return found

    def _random(self) -> int:
        return self._bits(64) - (1 << 63)

    def _randomblob(self, size: Any) -> bytes:
        count = max(1, int(size or 0))
        if count > _LONGEST_BLOB:
            raise ProgrammingError(f"randomblob({count}): at most {_LONGEST_BLOB} bytes")
        return shake_128(self._bits(128).to_bytes(16)).digest(count)  # word by word 3 MB took 0.4 s


def _word(value: Any) -> str | None:
    """A value as SQLite's date functions read it: the bytes of a blob are a text, too, and a text ends at a NUL."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    return value.partition("\0")[0].lower() if isinstance(value, str) else None
