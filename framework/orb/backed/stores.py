"""The stores of the backed replicas of a node: opened once in a process, whatever lives the node has in the group."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential

from framework.com.view import Holding
from framework.declare import Backed, Object, Place
from framework.errors import Broken, Unreadable
from framework.ids import TRAN, Node, ObjectName, Replica, object_of
from framework.orb.backed.committer import Committer
from framework.orb.backed.recalled import recalled
from framework.orb.durable.outcomes import share_commits
from framework.orb.held import Held, Unusable
from framework.orb.moving.spool import framed
from framework.orb.replaced import UNREADABLE, Keep

if TYPE_CHECKING:
    from framework.orb.config import Config
    from framework.orb.durable.disk import Disk

T = TypeVar("T")
log = logging.getLogger(__name__)

PATIENCE = 30.0  # seconds that a commit may take


class Stores:
    def __init__(self, config: "Config", node: Node) -> None:
        """Opens nothing yet."""
        self._node = node
        mine = [r for p, r in config.directory.on(node) if p.name != TRAN]
        here = [r for r in mine if issubclass(config.classes[object_of(r)], Backed)]
        self.objects: dict[Replica, Backed] = {r: _made(config.classes[object_of(r)]) for r in here}
        base = Path(config.serve.data or "") / node / "stores"
        self._places = {r: _place(r, node, base, config.options) for r in here}
        self._open: set[Replica] = set()
        self.keep = Keep()
        for r, target in self.objects.items():
            self.keep.add(r, target.beside(self._places[r]), partial(_write, target))
        self.committers: dict[Replica, Committer] = {}  # of the last life

    def _reopened(self, replica: Replica) -> None:
        """In a thread."""
        self._alone(replica)
        target = self.objects[replica]
        if replica in self._open:
            target.close()
            self._open.discard(replica)
        target.open(self._places[replica])
        self._open.add(replica)

    async def _patiently(self, replica: Replica, act: Callable[[], T]) -> T:
        def told(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome is not None else None
            log.warning("the store of %s does not work yet: %s", replica, error)

        wait = wait_exponential(multiplier=0.2, max=10.0)
        async for attempt in AsyncRetrying(wait=wait, retry=retry_if_exception_type(Broken), before_sleep=told):
            with attempt:
                return await asyncio.to_thread(act)
        raise AssertionError("it is tried for ever")

    async def recall(self, held: dict[Replica, Held], disk: "Disk | None", failed: Callable[[Exception], None]) -> bool:
        """Open all stores anew, and take over what they hold; wait for one that does not work. False: one never will,
        and ``failed`` was told why."""
        try:
            await self._recall(held, disk)
        except Exception as error:
            failed(error)
            return False
        return True

    async def _recall(self, held: dict[Replica, Held], disk: "Disk | None") -> None:
        for replica in self.objects:
            before = held.pop(replica, None)
            if before is not None:  # it may be about to be compared, in a batch of its own
                await asyncio.to_thread(before.spool.close)
            found = await self._held(replica, disk.note.replicas.get(replica, 0) if disk is not None else 0)
            if found is not None:
                held[replica] = found
        await asyncio.to_thread(share_commits, held, self._node)

    async def _held(self, replica: Replica, version: int) -> Held | None:
        def act() -> Held | None:
            try:
                self._reopened(replica)  # each time: what a connection that broke could not do, a new one may
                found = recalled(replica, self.objects[replica], version)
            except Unreadable as error:
                log.error("%s: WHAT ITS STORE HOLDS CANNOT BE READ: %s. It does not count", replica, error)
                self.keep.set_aside(replica, UNREADABLE)
                self._reopened(replica)
                found = recalled(replica, self.objects[replica], version)
            return found or self._damaged(replica)

        found = await self._patiently(replica, act)
        if found is not None and not found.damaged:
            log.info("%s was in view %d, with %d changes", replica, found.holding.version, found.holding.performed)
        return found

    def _damaged(self, replica: Replica) -> Held | None:
        """In the place of a state that could not be read: there was one."""
        kept = self.keep.places[replica].there(UNREADABLE)
        if not kept:
            return None
        why = f"what its store held could not be read, and is kept: {kept[-1][1]}"
        held = Held(Holding(replica, 0, 0), b"", "", Unusable(f"{replica} has no state: {why}"), ())
        held.damaged = why
        return held

    def _alone(self, replica: Replica) -> None:
        """Nobody of a life that is over works with it any more."""
        if replica in self.committers and not self.committers[replica].join(PATIENCE):
            raise Broken(f"the last commit has not ended after {PATIENCE:g} s")

    def close(self) -> None:
        """In a thread."""
        for replica in self._open:
            try:
                self._alone(replica)
                self.objects[replica].close()
            except Broken as error:
                log.warning("%s: %s", replica, error)
        self._open.clear()


def _write(target: Backed, path: Path) -> None:
    """See ``Backed.set_aside``."""
    if not target.set_aside(path):
        with path.open("wb") as file:
            for chunk in target.get_state():
                file.write(framed(chunk))


def _made(cls: type[Object]) -> Backed:
    made = cls()
    assert isinstance(made, Backed)
    return made


def _place(replica: Replica, node: Node, base: Path, options: Mapping[ObjectName, Mapping[str, Any]]) -> Place:
    name = object_of(replica)
    return Place(replica, name, node, base / name, options.get(name, {}))
