"""States that another one took the place of: kept beside the store, until an operator removes them (docs/durable.md).

    database.sqlite.differs-20260102T030405Z      not the state that the majority had, after a crash of all
    database.sqlite.unreadable-20260102T030405Z   torn, or no database at all
    database.sqlite.replaced-20260102T030405Z     of a node that was away; nobody knows whether it was what it should be

The name says all, so nothing else has to be remembered. A kept state counts for nothing, and whoever removes the file,
or the directory, has removed it. The last kind is what each node has that comes back to a group that has gone on;
there is one at most, and it goes when the next one comes.
"""

import datetime as dt
import logging
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from framework.errors import Broken
from framework.ids import Replica

log = logging.getLogger(__name__)

DIFFERS: Final = "differs"
UNREADABLE: Final = "unreadable"
REPLACED: Final = "replaced"
#: How many of each kind are kept of a replica. If there are more, the oldest goes.
MOST: Final = {DIFFERS: 3, UNREADABLE: 3, REPLACED: 1}
WORDS: Final = {
    DIFFERS: "a state that was not that of the majority",
    UNREADABLE: "a state that could not be read",
    REPLACED: "a state from before this node was away, which was not compared",
}


class Replaced:
    """Those of one replica; ``beside``: how their names begin. In any thread."""

    def __init__(self, beside: Path) -> None:
        self._beside = beside

    @property
    def directory(self) -> Path:
        return self._beside.parent

    def keep(self, kind: str, write: Callable[[Path], None]) -> Path:
        """``write`` puts the state there. If it fails, nothing is kept, and no other state may take its place."""
        path = self._free(kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == REPLACED:
            self._drop(kind, 0)  # it may have to make room for this one
        try:
            write(path)
        except OSError as error:
            remove(path)
            raise Broken(f"{path}: the state that is replaced cannot be kept: {error.strerror}") from error
        except BaseException:
            remove(path)
            raise
        self._drop(kind, MOST[kind])
        log.warning("%s is kept: %s; remove it when nobody needs it", WORDS[kind], path)
        return path

    def there(self, *kinds: str) -> list[tuple[str, Path]]:
        """Each with its kind, the oldest first."""
        found = [(kind, path) for kind in kinds or MOST for path in self._beside.parent.glob(self._name(kind, "*"))]
        return sorted([(k, p) for k, p in found if not p.name.endswith(("-wal", "-shm"))], key=lambda f: f[1].name)

    def rename(self, path: Path, kind: str) -> Path:
        """It is of another kind, as has come out."""
        new = self._free(kind)
        for end in ("-wal", "-shm", ""):
            old = path.with_name(path.name + end)
            if old.exists():
                old.replace(new.with_name(new.name + end))
        self._drop(kind, MOST[kind])
        return new

    def told(self) -> list[dict[str, Any]]:
        """For ``obo status``: plain data."""
        return [{"path": str(path), "kind": kind, "bytes": _size(path)} for kind, path in self.there()]

    def _name(self, kind: str, when: str) -> str:
        return f"{self._beside.name}.{kind}-{when}"

    def _free(self, kind: str) -> Path:
        now = dt.datetime.now(dt.UTC)
        while True:
            path = self._beside.with_name(self._name(kind, f"{now:%Y%m%dT%H%M%SZ}"))
            if not path.exists():
                return path
            now += dt.timedelta(seconds=1)

    def _drop(self, kind: str, most: int) -> None:
        for _, path in self.there(kind)[: -most or None]:
            log.warning("%s is removed: %d of its kind are kept, and there is a newer one", path, MOST[kind])
            remove(path)


class Keep:
    """Those of a node, by replica. Replicas that are not in it keep nothing."""

    def __init__(self) -> None:
        self.places: dict[Replica, Replaced] = {}
        self._writers: dict[Replica, Callable[[Path], None]] = {}
        self._last: dict[Replica, Path] = {}

    def add(self, at: Replica, beside: Path, write: Callable[[Path], None]) -> None:
        self.places[at], self._writers[at] = Replaced(beside), write

    def set_aside(self, at: Replica, kind: str) -> None:
        """In a thread. Another state is about to take the place of the one that this replica has."""
        if at in self.places:
            self._last[at] = self.places[at].keep(kind, self._writers[at])

    def compared(self, at: Replica, same: bool) -> str:
        """In a thread. The state that was set aside last was compared with the one that came: what there is to say."""
        path = self._last.pop(at, None)
        if path is None:
            return ""
        if same:
            log.info("%s: %s holds the same as the state that came, and is removed", at, path)
            remove(path)
            return ""
        kept = self.places[at].rename(path, DIFFERS)
        text = f"the state that {at} had before DIFFERS from that of the others, though it had performed the same"
        log.error("%s. It is kept: %s", text, kept)
        return text

    def directory(self, at: Replica) -> Path | None:
        """Where the store of this replica is, if it is here."""
        return self.places[at].directory if at in self.places else None

    def told(self) -> list[dict[str, Any]]:
        return [{"replica": at, **one} for at, place in self.places.items() for one in place.told()]


def remove(path: Path) -> None:
    for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)


def copied(path: Path, files: Iterable[Path]) -> None:
    """A directory with copies of these."""
    path.mkdir(parents=True)
    for file in files:
        shutil.copy2(file, path / file.name)


def _size(path: Path) -> int:
    try:
        return sum(p.stat().st_size for p in path.iterdir()) if path.is_dir() else path.stat().st_size
    except OSError:
        return 0  # it was removed just now
