"""Calls of clients that wait a little at their home, so that several leave together (framework.com.convoy).

As at a real node: what a client sends besides never passes a call of its own that waits here.
"""

from functools import partial
from random import Random
from typing import TYPE_CHECKING

import msgspec

from framework.com.events import AnyEvent, Cancel, Collect, Decide, Leave, Submit, Together
from framework.com.receipt import Receipt
from framework.ids import Replica
from framework.sim.program import METHODS, carrying

if TYPE_CHECKING:
    from framework.sim.node import SimNode

Like = tuple[str, str, tuple[Replica, ...], Receipt]  # object, method, replicas, receipt


class Gathering:
    def __init__(self, node: "SimNode") -> None:
        self._node = node
        self._chance = Random(f"{node.world.seed}/gathering/{node.name}")
        self._waiting: dict[Like, list[Submit]] = {}
        self._times = 0  # that something left, or was lost
        world = Random(f"{node.world.seed}/brief")  # the same at all nodes
        self._brief = frozenset(METHODS if world.random() < 0.5 else [m for m in METHODS if world.random() < 0.5])
        self._patience = world.choice([(0.0, 5.0), (10.0, 30.0), (30.0, 80.0)])

    def takes(self, event: AnyEvent) -> bool:
        """True: it leaves later, with others."""
        like = self._like(event) if isinstance(event, Submit) and self._node.com is not None else None
        if like is None:
            if isinstance(event, Submit | Collect | Cancel):
                self._first(event.caller)
            elif isinstance(event, Leave | Decide):
                self._first(event.client)
            return False
        assert isinstance(event, Submit)
        self._first(event.caller, like)
        if not self._waiting:
            self._node.world.after(self._chance.uniform(*self._patience), partial(self._leave, self._times))
        self._waiting.setdefault(like, []).append(event)
        return True

    def _first(self, who: object, like: Like | None = None) -> None:
        """What a client sends now does not pass what it has sent before, but for calls that are ``like`` it."""
        if any(s.caller == who for other, submits in self._waiting.items() if other != like for s in submits):
            self.flush()

    def _like(self, event: Submit) -> Like | None:
        performer = self._node.world.performer
        if event.receipt is None or event.tran or event.sessions or len(event.parts) > 1:
            return None
        part = event.parts[0]
        if len(part.replicas) < 2 or part.footprint.readonly or event.receipt.source is not None:
            return None
        if not isinstance(event.caller, str) or not performer.may_travel(event.caller, event.call, part):
            return None
        return part.object, part.footprint.method, part.replicas, event.receipt

    def clear(self) -> None:
        """They are lost with their home."""
        self._times += 1
        self._waiting.clear()

    def _leave(self, times: int) -> None:
        if self._times == times:
            self.flush()

    def flush(self) -> None:
        """They leave."""
        self._times += 1
        waiting, self._waiting = self._waiting, {}
        for submits in waiting.values():
            name = f"together-{self._node.name}-{self._node.life}-{self._node.starts}"
            some = tuple([_with_footprint(s) for s in submits])
            self._node.feed(Together(name, some, self._brief))


def _with_footprint(submit: Submit) -> Submit:
    """Those of a convoy are told what all of them touch; what each does depends on its own."""
    part = submit.parts[0]
    return msgspec.structs.replace(submit, parts=(part._replace(args=carrying(part.footprint)),))
