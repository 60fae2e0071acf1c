"""The files of one SQLite replica, and the lock that keeps others away.

database.sqlite             with -wal and -shm beside it while it is open
database.sqlite.lock        held by the process that has it open
database.sqlite.arriving    a state that is being taken over; while there is one, the database counts for nothing
database.sqlite.leaving-N   a copy that is being sent
"""

import fcntl
import os
from pathlib import Path
from typing import BinaryIO

from framework import BadRequest, Broken

_OPEN: set[Path] = set()  # by this process: locks of files do not keep it from itself


class Files:
    def __init__(self, database: Path) -> None:
        self.database = database
        self.arriving = database.with_name(database.name + ".arriving")
        self._lock: BinaryIO | None = None
        self._copies = 0
        self._inode = 0

    def lock(self) -> None:
        """BadRequest if somebody has it."""
        path = self.database.with_name(self.database.name + ".lock")
        taken = f"{self.database} is in use by another replica: give each its own url, for example with {{node}} in it"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.resolve() in _OPEN:
                raise BadRequest(taken)
            lock = path.open("ab")
        except OSError as error:
            raise Broken(f"{path}: {error.strerror}") from None
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise BadRequest(taken) from None
        _OPEN.add(path.resolve())
        self._lock = lock

    def unlock(self) -> None:
        if self._lock is not None:
            _OPEN.discard(Path(self._lock.name).resolve())
            self._lock.close()
            self._lock = None

    def clear(self) -> None:
        """Nothing is left of the database."""
        for end in ("-wal", "-shm", ""):
            self.database.with_name(self.database.name + end).unlink(missing_ok=True)

    def keep(self, path: Path) -> None:
        """The database has this name from now on. ``Broken`` if it cannot be done."""
        try:
            for end in ("-wal", "-shm", ""):
                old = self.database.with_name(self.database.name + end)
                if old.exists():
                    old.replace(path.with_name(path.name + end))
            sync(self.database.parent)
        except OSError as error:
            raise Broken(f"{path}: the database cannot be kept there: {error.strerror}") from None

    def tidy(self) -> None:
        """What a process that was killed has left."""
        for path in self.database.parent.glob(self.database.name + ".leaving-*"):
            path.unlink(missing_ok=True)

    def copy(self) -> Path:
        """A name for a copy."""
        self._copies += 1
        return self.database.with_name(f"{self.database.name}.leaving-{self._copies}")

    def replace(self) -> None:
        """What has arrived takes the place of the database, which nobody has open. Whenever this is interrupted, there
        is either ``arriving``, or the new database alone."""
        self.clear()
        sync(self.database.parent)
        self.arriving.replace(self.database)
        sync(self.database.parent)

    def opened(self) -> None:
        self._inode = self.database.stat().st_ino

    def check(self) -> None:
        """A file that was removed while it is open goes on taking writes, for nobody."""
        try:
            same = os.stat(self.database).st_ino == self._inode
        except OSError as error:
            raise Broken(f"{self.database}: {error.strerror}") from None
        if not same:
            raise Broken(f"{self.database} was replaced by another file while it was open")


def sync(directory: Path) -> None:
    number = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
