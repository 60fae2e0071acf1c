"""A database whose process dies, as SIGKILL ends it, at a place that a test has chosen."""

import os
import signal
from pathlib import Path

from objects.sql import Database

PLACES = ("begin", "before", "after", "giving", "taking", "taken")


def doomed(directory: Path, node: str) -> Path:
    return directory / "data" / node / "stores" / "db" / "doom"


def doom(directory: Path, node: str, place: str, count: int) -> None:
    """The process of ``node`` dies when it comes to ``place`` for the ``count``-th time. ``before`` and ``after``: a
    commit; ``giving`` and ``taking``: a piece of a state; ``taken``: all of it is there, but no notes yet."""
    assert place in PLACES
    target = doomed(directory, node)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_suffix(".new").write_text(f"{place} {count}")
    target.with_suffix(".new").replace(target)


class Doomed(Database):
    def open(self, place):
        self._doom = place.directory / "doom"
        self._reached = dict.fromkeys(PLACES, 0)
        super().open(place)

    def _at(self, place):
        try:
            wanted, count = self._doom.read_text().split()
        except FileNotFoundError:
            return
        if wanted == place:
            self._reached[place] += 1
            if self._reached[place] >= int(count):
                self._doom.unlink()
                os.kill(os.getpid(), signal.SIGKILL)

    def begin(self):
        super().begin()
        self._at("begin")

    def commit(self, entries, head=None):
        self._at("before")
        super().commit(entries, head)
        self._at("after")

    def get_state(self):
        for chunk in super().get_state():
            self._at("giving")
            yield chunk

    def set_state(self, chunks):
        super().set_state(self._arriving(chunks))
        self._at("taken")

    def _arriving(self, chunks):
        for chunk in chunks:
            self._at("taking")
            yield chunk
