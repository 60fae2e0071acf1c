"""A disk that loses power: it knows what was made safe, and gives back any mixture of that and of what was not."""

from pathlib import Path
from random import Random

from framework.store.disk import Disk


class Crash(BaseException):
    """The process ends here. No ``except Exception`` of the store may hold it up."""


class File:
    def __init__(self, data: bytes = b"") -> None:
        self.safe = data
        self.now = bytearray(data)
        self.lost = range(0)  # what can be read, but will never be on disk

    def sync(self) -> None:
        """A sync that failed is not made good by the next one: the system takes these bytes for written."""
        data = bytearray(self.now)
        data[self.lost.start : self.lost.stop] = bytes(len(self.lost))
        self.safe = bytes(data)

    def fail(self) -> None:
        self.lost = range(len(self.safe), len(self.now))


class LossyDisk(Disk):
    """Calls are counted. From call ``die_at`` on all of them crash; call ``fail_at`` raises ``error``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls = 0
        self.die_at = self.fail_at = 0
        self.error = OSError(0, "")
        self.open_files: dict[int, File] = {}
        self.now: dict[Path, File | None] = {}  # None: a directory
        for path in root.rglob("*"):
            self.now[path] = File(path.read_bytes()) if path.is_file() else None
        self.safe = dict(self.now)

    def _step(self) -> None:
        self.calls += 1
        if self.die_at and self.calls >= self.die_at:
            raise Crash
        if self.calls == self.fail_at:
            raise self.error

    def make_one(self, path: Path) -> None:
        self._step()
        super().make_one(path)
        self.now[path] = None

    def create(self, path: Path) -> int:
        self._step()
        fd = super().create(path)
        self.now[path] = self.open_files[fd] = File()
        return fd

    def open(self, path: Path) -> int:
        self._step()
        fd = super().open(path)
        file = self.now[path]
        assert file is not None
        self.open_files[fd] = file
        return fd

    def write(self, fd: int, data: bytes, offset: int) -> None:
        try:
            self._step()
        except BaseException:
            self._write(fd, data[: len(data) // 2], offset)  # a part of it was done
            raise
        self._write(fd, data, offset)

    def _write(self, fd: int, data: bytes, offset: int) -> None:
        if self.calls <= self.die_at or not self.die_at:
            super().write(fd, data, offset)
            self.open_files[fd].now[offset : offset + len(data)] = data

    def sync(self, fd: int) -> None:
        try:
            self._step()
        except OSError:
            self.open_files[fd].fail()
            raise
        self.open_files[fd].sync()

    def sync_directory(self, path: Path) -> None:
        self._step()
        self.safe = {p: f for p, f in self.safe.items() if p.parent != path}
        self.safe |= {p: f for p, f in self.now.items() if p.parent == path}

    def truncate(self, fd: int, size: int) -> None:
        self._step()
        super().truncate(fd, size)
        file = self.open_files[fd]
        del file.now[size:]
        file.lost = range(min(file.lost.start, size), min(file.lost.stop, size))

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        super().rename(old, new)
        self.now[new] = self.now.pop(old)

    def remove(self, path: Path) -> None:
        self._step()
        super().remove(path)
        self.now.pop(path, None)

    def close(self, fd: int) -> None:
        super().close(fd)
        del self.open_files[fd]

    def tear(self, path: Path, data: bytes) -> None:
        """What the process before this one did not finish."""
        file = self.now[path]
        assert file is not None
        file.now += data
        path.write_bytes(file.now)

    def after_kill(self) -> "LossyDisk":
        """The process is gone, the machine is not: all that was written is there, and no safer than it was."""
        disk = LossyDisk(self.root)
        disk.now, disk.safe = self.now, self.safe
        return disk

    def after_power_loss(self, target: Path, random: Random) -> "LossyDisk":
        target.mkdir()
        for path in sorted({*self.safe, *self.now}):
            place = target / path.relative_to(self.root)
            entries = random.choice([self.safe, self.now])
            if path not in entries or not place.parent.is_dir():
                continue
            file = entries[path]
            if file is None:
                place.mkdir()
            else:
                place.write_bytes(spoil(file.safe, bytes(file.now), random))
        return LossyDisk(target)


def spoil(safe: bytes, now: bytes, random: Random) -> bytes:
    """What of a file may be found: all that is safe, and anything of what was written since."""
    if not now.startswith(safe):
        return random.choice([safe, now])
    tail = bytearray(now[len(safe) :])
    for _ in range(random.randrange(3)):
        if tail:
            start = random.randrange(len(tail))
            kind = random.choice(["cut", "zeros", "hole", "flip"])
            if kind == "cut":
                del tail[start:]
            elif kind == "zeros":
                tail[start:] = bytes(len(tail) - start)
            elif kind == "hole":
                size = random.randrange(len(tail) - start)
                tail[start : start + size] = bytes(size)
            else:
                tail[start] ^= 1 << random.randrange(8)
    return safe + bytes(tail)
