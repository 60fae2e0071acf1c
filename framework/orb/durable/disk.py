"""The store of a node: the journals of its durable replicas, and what the node itself must remember."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from framework.declare import Backed, Object
from framework.errors import BadRequest, OboError
from framework.ids import Node, ObjectName, Replica, object_of
from framework.orb.durable.entries import Note, decode, encode
from framework.orb.durable.outcomes import Tran, share_commits
from framework.orb.durable.restore import restored
from framework.orb.held import Held
from framework.orb.replaced import Keep, copied
from framework.store import Journal, Store

if TYPE_CHECKING:
    from framework.orb.config import Config

log = logging.getLogger(__name__)

KEPT = "kept"  # in the directory of the node: copies of journals


class Disk:
    def __init__(self, directory: Path, node: Node, replicas: list[Replica]) -> None:
        """Reads nothing of the replicas yet."""
        self._store = Store(directory, node)
        self._node = node
        self._replicas = replicas
        known = self._store.remembered()
        self.note = Note() if known is None else decode(known, Note, f"{directory}: the record of {node}")
        self.journals: dict[Replica, Journal] = {}
        self.adopting: dict[Replica, asyncio.Future[None]] = {}  # states on their way to the journal, or there

    def load(self, classes: Mapping[ObjectName, type[Object]]) -> dict[Replica, Held]:
        """In a thread: what the replicas had when the last process ended. An error of the store or of a class says why
        the node cannot start."""
        found = {}
        for replica in self._replicas:
            journal = self.journals[replica] = self._store.journal(replica)
            cls = classes.get(object_of(replica), Tran)
            try:
                held = restored(replica, cls, journal.load(), self.note.replicas.get(replica, 0))
            except OboError:
                raise
            except Exception as error:  # of a set_state that is not ours
                raise BadRequest(
                    f"the state of {replica} on disk cannot be used: {type(error).__name__}: {error}"
                ) from error
            if held is not None:
                found[replica] = held
                log.info("%s was in view %d, with %d changes", replica, held.holding.version, held.holding.performed)
        share_commits(found, self._node)
        return found

    async def remember(self, version: int, ready: list[Replica]) -> None:
        """Returns when it is on disk that this node is in this view, and that these replicas have a state on disk."""
        version = max(version, self.note.version)
        self.note = Note(version, {**self.note.replicas, **dict.fromkeys(ready, version)})
        await self._store.remember(encode(self.note))

    def kept_by(self, keep: Keep) -> None:
        """A journal that differs from the others is copied before it is begun anew. It cannot have changed on disk: the
        store compares all bytes. So the state of a node that was away is not kept."""
        for replica, journal in self.journals.items():
            beside = self._store.directory / KEPT / replica
            keep.add(replica, beside, partial(_copy, journal.directory))

    def close(self) -> None:
        self._store.close()


def _copy(source: Path, path: Path) -> None:
    copied(path, [file for file in source.iterdir() if file.is_file()])


def open_disk(config: "Config", node: Node) -> Disk | None:
    """None if this node keeps nothing. BadRequest if it must, and is not told where."""
    here = config.directory.on(node)
    durable = [replica for placement, replica in here if placement.durable]
    if config.serve.data is not None:
        backed = [n for n, cls in config.classes.items() if issubclass(cls, Backed)]
        plain = [r for r in durable if object_of(r) not in backed]
        return Disk(Path(config.serve.data) / node, node, plain)
    if durable:
        raise BadRequest(
            f"{durable[0]} is durable, and {node} is not told where to keep it: name a directory, in [serve] of the "
            f'configuration (data = "data") or with obo serve --data DIR'
        )
    return None
