"""The calls that change something on disk. All of the store's go through here: a test replaces it by one that fails.

A file is changed in place only at its end. Everything else is written under a name that ends in ``.new``, made safe,
and renamed: whoever finds a file under its real name finds it whole.
"""

import os
from collections.abc import Iterable
from pathlib import Path

#: Ends the names of files that are being written. Whoever opens a store removes what a crash left of them.
NEW = ".new"


class Disk:
    def make_directory(self, path: Path) -> None:
        """With all above it. The directory is safe afterwards, if the one above it was."""
        if not path.is_dir():
            self.make_directory(path.parent)
            self.make_one(path)
            self.sync_directory(path.parent)

    def make_one(self, path: Path) -> None:
        path.mkdir(exist_ok=True)

    def create(self, path: Path) -> int:
        return os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)

    def open(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def write(self, fd: int, data: bytes, offset: int) -> None:
        view = memoryview(data)
        while view:
            done = os.pwrite(fd, view, offset)
            view, offset = view[done:], offset + done

    def sync(self, fd: int) -> None:
        getattr(os, "fdatasync", os.fsync)(fd)  # some systems have no fdatasync

    def sync_directory(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def rename(self, old: Path, new: Path) -> None:
        os.rename(old, new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def close(self, fd: int) -> None:
        os.close(fd)

    def place(self, path: Path, pieces: Iterable[bytes]) -> int:
        """A whole file under its name, safe on disk, or what was there before. Returns its size."""
        new = path.with_name(path.name + NEW)
        fd = self.create(new)
        size = 0
        try:
            for piece in pieces:
                self.write(fd, piece, size)
                size += len(piece)
            self.sync(fd)
        except BaseException:
            self._drop(fd, new)
            raise
        self.close(fd)
        self.rename(new, path)
        self.sync_directory(path.parent)
        return size

    def _drop(self, fd: int, path: Path) -> None:
        try:
            self.close(fd)
            self.remove(path)
        except OSError:
            pass  # the first error is told; what is left is removed when the store is opened
