"""Whose fault it was: the statement's, then every replica answers alike; or the store's, then this one does not answer.

Errors of the first kind have the names of PEP 249. Those of the second are ``Broken``: disk full, I/O error, locked by
a stranger, connection lost. Each says what was wrong, and in which statement.
"""

import sqlite3
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from framework import Broken, Interrupted, Unreadable

if TYPE_CHECKING:
    import psycopg

_SHOWN = 200
P = ParamSpec("P")
R = TypeVar("R")


class _Store(Protocol):
    def _broken(self, error: Any, what: str) -> Exception: ...


S = TypeVar("S", bound=_Store)


def own(*kinds: type[Exception]) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Decorate a method of an engine. A fault of a caller's statement is a ``SqlError`` when it gets here. An error of
    the driver is one of our own statements: the store's fault. Told to the caller, it would be an answer that other
    replicas do not give."""

    def decorated(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        @wraps(method)
        def guarded(self: S, *args: P.args, **named: P.kwargs) -> R:
            try:
                return method(self, *args, **named)
            except kinds as error:
                raise self._broken(error, f"[{method.__name__}]") from error

        return guarded  # type: ignore[return-value]  # ``self`` by position only

    return decorated


class SqlError(ValueError):
    """A statement cannot be performed. It left no trace."""


class IntegrityError(SqlError):
    """A constraint does not allow it."""


class DataError(SqlError):
    """A value that the database cannot take, or not there."""


class ProgrammingError(SqlError):
    """The statement is wrong: its text, a name in it, the number of its parameters."""


class OperationalError(SqlError):
    """It was ended: it took too long, nobody waits for it, or it needs more memory or disk than there is."""


def shown(text: str) -> str:
    """A statement in an error message: one line, not too long."""
    line = " ".join(text[: 4 * _SHOWN].split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


_ENDED: Final = "it took longer than the option statement_limit allows, or nobody waits for it any more"

#: How a trigger of sqlite_bytes begins what it says.
BYTES: Final = "bytes are refused in a column of type"

#: Result codes of SQLite that say something about this machine, not about the statement.
_BROKEN: Final = {
    sqlite3.SQLITE_INTERNAL: "SQLite found an error in itself",
    sqlite3.SQLITE_PERM: "no permission for the database file",
    sqlite3.SQLITE_BUSY: "another process holds the database locked",
    sqlite3.SQLITE_LOCKED: "the database is locked",
    sqlite3.SQLITE_NOMEM: "out of memory",
    sqlite3.SQLITE_READONLY: "the database file cannot be written",
    sqlite3.SQLITE_IOERR: "the disk gave an error",
    sqlite3.SQLITE_CORRUPT: "the database file is damaged",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened",
    sqlite3.SQLITE_PROTOCOL: "the lock protocol of the file failed",
    sqlite3.SQLITE_NOLFS: "the file system cannot take a file of this size",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database",
}
_UNREADABLE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
#: Those that are no reason to leave for a statement that only reads.
_SCARCE: Final = {sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_FULL, sqlite3.SQLITE_INTERRUPT}
_DATA: Final = {sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE}


def from_sqlite(error: Exception, what: str, reads: bool = False) -> Exception:
    """What to raise for what sqlite3 raised while it did ``what``: a statement, or words in brackets. ``reads``: beside
    the batch, and the file is not changed by it."""
    where = f"in: {shown(what)}"
    if isinstance(error, MemoryError):
        return (OperationalError if reads else Broken)(f"out of memory; {where}")
    if isinstance(error, sqlite3.Error):
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT and not reads:
            return Interrupted(f"the statement was ended; {where}")
        if reads and code in _SCARCE:
            return OperationalError(f"{_ENDED if code == sqlite3.SQLITE_INTERRUPT else _BROKEN[code]}; {where}")
        if not code and "closed database" in str(error):
            return Broken(f"{error}; {where}")
        if code in _BROKEN:
            name = getattr(error, "sqlite_errorname", code)
            return (Unreadable if code in _UNREADABLE else Broken)(f"{_BROKEN[code]} ({name}: {error}); {where}")
        if code == sqlite3.SQLITE_CONSTRAINT:
            if str(error).startswith(BYTES):
                return DataError(f"{error}; {where}")
            return IntegrityError(f"{error}; {where}")
        if code in _DATA or isinstance(error, sqlite3.DataError):
            return DataError(f"{error}; {where}")
        return ProgrammingError(f"{error}; {where}")
    if isinstance(error, OverflowError):
        return DataError(
            f"SQLite keeps integers of 64 bits: pass larger ones as text, to a column of type TEXT; {where}"
        )
    if isinstance(error, UnicodeError):
        return DataError(f"not valid text: {error}; {where}")
    return error


#: Classes of SQLSTATE that say something about the server: connection, deadlock, resources, operator, system.
_BROKEN_CLASSES: Final = ("08", "40", "53", "57", "58", "F0", "XX")
_LOCKED: Final = "55P03"
_CANCELLED: Final = "57014"
_SCARCE_CLASS: Final = "53"
_LOST: Final = ("OperationalError", "InterfaceError", "InternalError")
_TOO_LARGE: Final = "invalid memory alloc request size"  # PostgreSQL takes a value of more than 1 GB for its own fault
_RAISED: Final = "P0001"  # RAISE in a trigger, as RAISE(ABORT) is in SQLite


def from_postgres(error: "psycopg.Error", what: str, reads: bool = False) -> Exception:
    """What to raise for what psycopg raised while it did ``what``. ``reads``: beside the batch."""
    where = f"in: {shown(what)}"
    state = error.sqlstate
    diag = error.diag
    text = diag.message_primary or " ".join(str(error).split())
    if diag.message_detail:
        text += f" ({diag.message_detail})"
    if _TOO_LARGE in text:
        return DataError(f"{text}; {where}")
    if state is None:
        lost = any(kind.__name__ in _LOST for kind in type(error).__mro__)
        return Broken(f"the connection is lost: {text}; {where}") if lost else DataError(f"{text}; {where}")
    if state == _CANCELLED:
        return OperationalError(f"{_ENDED}; {where}") if reads else Interrupted(f"the statement was ended; {where}")
    if reads and state.startswith(_SCARCE_CLASS):
        return OperationalError(f"{text}; {where}")
    if state.startswith(_BROKEN_CLASSES) or state == _LOCKED:
        return Broken(f"{text} (SQLSTATE {state}); {where}")
    if state.startswith("23") or state == _RAISED:
        return IntegrityError(f"{text}; {where}")
    if state.startswith("22"):
        return DataError(f"{text}; {where}")
    return ProgrammingError(f"{text}; {where}")
