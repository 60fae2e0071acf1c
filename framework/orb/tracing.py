"""The trace of a node, written as it goes: each record is in the file before its effect is carried out.

So a node that is killed leaves a trace that ends early but is whole: what others saw of it is in there.
"""

import time
from pathlib import Path
from typing import Any

from framework.com.events import AnyEffect
from framework.com.telling import Duplicate, Ended, Prepared, Rode
from framework.com.view import Directory
from framework.ids import Node, Replica
from framework.trace.digest import digest
from framework.trace.files import file_name
from framework.trace.record import Record, line
from framework.trace.recorder import Recorder, header


class Tracing:
    """Of one life of a node."""

    def __init__(self, node: Node, directory: Directory, directory_path: Path) -> None:
        directory_path.mkdir(parents=True, exist_ok=True)
        life = directory.view.life(node) or 1
        if life == 1:  # of an earlier run: this is the first view of a new group
            for old in directory_path.glob(f"{node}.since*.jsonl"):
                old.unlink()
        self._file = (directory_path / file_name(node, life)).open("wb", buffering=0)
        self._put(line(header(node, directory)))
        self._early: set[Ended | Prepared | Rode | Duplicate] = set()
        self._recorder = Recorder(node, directory.view.version, self._write, life)

    def _write(self, record: Record) -> None:
        if not self._file.closed:
            self._put(line(record))

    def _put(self, data: bytes) -> None:
        """All of it, or OSError, at which the node stops: a disk that is nearly full takes only a part of a line, and
        says so by the number of bytes alone. No record is lost without a word."""
        while len(data) > (written := self._file.write(data)):
            data = data[written:]

    def early(self, ended: Ended | Prepared | Rode | Duplicate) -> None:
        """An instance has ended and goes to disk: this stands in the trace before it is there, and not once more."""
        self._early.add(ended)
        self._recorder.effect(ended, _now())

    def effect(self, effect: AnyEffect) -> None:
        if isinstance(effect, Ended | Prepared | Rode | Duplicate) and effect in self._early:
            self._early.discard(effect)
            return
        self._recorder.effect(effect, _now())

    def ticket(self, replica: Replica) -> str:
        """Of the state that a Snapshot takes, right after its record."""
        return self._recorder.ticket(replica)

    def adopt(self, replica: Replica, ticket: str, kept: tuple[str, ...] = ()) -> None:
        """A replica has its state; before the Take that lets its requests begin."""
        self._recorder.adopt(_now(), replica, ticket, kept)

    def stop(self, states: list[tuple[Replica, dict[str, Any], int]], still: list[str]) -> None:
        now = _now()
        for replica, state, performed in states:
            self._recorder.state(now, replica, digest(state), performed)
        self._recorder.stop(now, tuple(still))
        self._file.close()

    def close(self) -> None:
        """The trace just ends here: with ``out``, or as that of a node that is killed."""
        self._file.close()


def _now() -> float:
    return round(time.time(), 6)
