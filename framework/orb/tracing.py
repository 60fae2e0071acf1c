"""The trace of a node, written as it goes: each record is in the file before its effect is carried out.

So a node that is killed leaves a trace that ends early but is whole: what others saw of it is in there.
"""

import time
from pathlib import Path
from typing import Any

from framework.com.events import AnyEffect
from framework.com.view import Directory
from framework.ids import Node, Replica
from framework.trace.digest import digest
from framework.trace.files import file_name
from framework.trace.record import Record, line
from framework.trace.recorder import Recorder, header


class Tracing:
    def __init__(self, node: Node, directory: Directory, directory_path: Path) -> None:
        directory_path.mkdir(parents=True, exist_ok=True)
        life = directory.view.life(node) or 1
        self._file = (directory_path / file_name(node, life)).open("wb", buffering=0)
        self._file.write(line(header(node, directory)))
        self._recorder = Recorder(node, directory.view.version, self._write, life)

    def _write(self, record: Record) -> None:
        self._file.write(line(record))

    def effect(self, effect: AnyEffect) -> None:
        self._recorder.effect(effect, round(time.time(), 6))

    def stop(self, states: list[tuple[Replica, dict[str, Any], int]], still: list[str]) -> None:
        now = round(time.time(), 6)
        for replica, state, performed in states:
            self._recorder.state(now, replica, digest(state), performed)
        self._recorder.stop(now, tuple(still))
        self._file.close()

    def abandon(self) -> None:
        """The trace just ends here, as that of a node that is killed."""
        self._file.close()
