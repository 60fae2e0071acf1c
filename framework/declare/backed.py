"""``Backed``: an object whose state lies in a store of its own that commits, such as a database.

The state of a plain object is its attributes, and the framework sees to undo, journal and snapshot. A backed object
does this itself, with what its store is good at; in return it can be larger than memory, and an answer costs a share
of one commit. The framework keeps the order, and keeps its own notes in the same store and the same commit: which
requests have been performed, and with what result. So nothing happens twice, whenever the process is killed.

    open(place)                       once in a process, before anything else
    recall()                          what the last commit says
    begin() execute() execute() commit(entries)      one thread, batch after batch
    with provisional(): execute()     in a batch: for a transaction that may still be aborted
    query()                           in other threads, beside it, seeing what is committed
    get_state() / set_state(chunks)   the whole state, to and from another replica
    close()

A method that changes the object runs in one thread, in the open batch. If it raises, it must have taken back what it
did, and nothing else. It calls no other objects. ``Broken`` says that the fault is not the call's but the store's: it
cannot be reached, the disk is full. Other replicas will perform the call, so this one must not answer: its node leaves
the group, and gets a fresh state when the store works again. ``Unreadable``, from ``open`` and ``recall``: what is
there cannot be read, now or later; it is set aside.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from framework.declare.base import Object
from framework.declare.environment import current
from framework.errors import Interrupted
from framework.footprint import Keys

#: What ``at_once`` says of a call that it does not perform.
LATER: Final = object()


@dataclass(frozen=True)
class Place:
    """Where a replica lives. ``options`` are what [objects.NAME.options] of the configuration says."""

    replica: str  # "db@n1"
    object: str
    node: str
    directory: Path  # of this replica alone; it may not exist yet
    options: Mapping[str, Any] = field(default_factory=dict)


class Recalled(msgspec.Struct, frozen=True):
    """What the framework wrote with the commits so far: ``head`` replaces all that was written before it."""

    head: bytes
    entries: Sequence[bytes] = ()


class Touched(msgspec.Struct, frozen=True):
    """What a call touches, as far as can be told before it is performed.

    ``keys`` None: it conflicts with everything that its method may conflict with. ``basis``: what this judgement stands
    on, say the version of a schema. The method finds it in ``self.basis`` when it is performed, and raises ``Outdated``
    if it is not right any more; the node that took the call then judges again.
    """

    keys: Keys | None
    basis: int | None = None


class Backed(Object):
    durable: ClassVar[bool] = True
    intentions: ClassVar[bool] = True

    #: A readonly method without arguments that says the same at all replicas at one point of the order; they are
    #: compared now and then ([group] compare_every).
    compares: ClassVar[str] = ""

    #: Does it take part in transactions? Then it has ``provisional``.
    transactions: ClassVar[bool] = False

    #: Seconds that a call may take at a replica; 0: as long as it takes. For ``open`` to set.
    limit: float = 0.0

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """BadRequest if [objects.NAME.options] is wrong. Asked before a node starts."""

    def open(self, place: Place) -> None:
        """BadRequest if that can never work; ``Broken`` if it may work later."""
        raise NotImplementedError

    def close(self) -> None:
        """An open batch is rolled back."""
        raise NotImplementedError

    def recall(self) -> Recalled | None:
        """None: there is no state, not even an initial one; or one that was not taken over to the end."""
        raise NotImplementedError

    def begin(self) -> None:
        """A batch begins."""
        raise NotImplementedError

    def commit(self, entries: Sequence[bytes], head: bytes | None = None) -> None:
        """In one go, on disk when it returns: what methods did since ``begin``, and the notes of the framework.
        ``head`` replaces all notes before it; ``entries`` come after it."""
        raise NotImplementedError

    def rollback(self) -> None:
        """Nothing since ``begin`` happened."""
        raise NotImplementedError

    def provisional(self) -> AbstractContextManager[None]:
        """Around calls in an open batch: what they do is seen inside, also by methods that only read, and is taken back
        at the end. Nothing is left of it, not even in what gives keys: the same calls again have the same results."""
        raise NotImplementedError

    def fingerprint(self) -> str:
        """Of the state, as committed, without the notes of the framework: equal at two replicas iff the states are."""
        raise NotImplementedError

    def fingerprint_of_batch(self) -> str | None:
        """The same of what there would be if the open batch were committed now. None: it cannot be told. Then replicas
        of which one had performed more than the other are not compared after a crash of all (docs/durable.md)."""
        return None

    def beside(self, place: Place) -> Path:
        """Where a state is kept that another one takes the place of: in a file whose name begins with this path, then
        says why and when. Asked before ``open``."""
        return place.directory / "state"

    def set_aside(self, path: Path) -> bool:
        """The state, as committed, is to be kept at ``path``, also one that cannot be read; nothing needs to be left of
        it where it was. Also called on an object that could not be opened, or is closed. ``Broken`` if that fails: then
        no other state takes its place. False: the framework is to write what ``get_state`` gives there."""
        return False

    def touched(self, method: str, values: tuple[Any, ...]) -> Touched:
        """Called on the node's loop, in no order with what is performed: quick, and safe beside other threads. An error
        of OboError's kind refuses the call."""
        return Touched(None)

    def at_once(self, method: str, values: tuple[Any, ...], keys: Keys | None) -> Any:
        """Called on the node's loop, for a method that only reads, with the keys that ``touched`` told: what it gives,
        of what is committed, if that is a matter of microseconds and waits for nobody. Else LATER, also if it would
        raise: then a thread performs it."""
        return LATER

    def interrupt(self, thread: int) -> None:
        """Called in another thread. End the method that this one (``threading.get_ident``) performs: a method that
        changes the object raises ``Interrupted``, and the batch is rolled back by the framework; one that only reads
        raises anything but ``Broken``. An end that comes between two statements may be lost, or meet the next one.
        Who cannot do that does nothing: calls have no limit then."""

    def ended(self, why: str) -> Exception:
        """Return what a call is answered that no replica performs, because it takes too long or fails everywhere."""
        return Interrupted(why)

    # The chunks of get_state are without the notes of the framework. An object that has set_state'd has no notes, and
    # recall() gives None until commit() has been called with a head: half of a transfer is no state.

    def get_state(self) -> Iterable[bytes]:
        raise NotImplementedError

    def set_state(self, chunks: Iterable[bytes]) -> None:
        """Unlike that of a plain object it is called on the very object that has been opened, also on one that has a
        state. No chunks at all: the initial, empty state. If it raises, ``recall`` gives None."""
        raise NotImplementedError

    @property
    def basis(self) -> int | None:
        """Of the call that is being performed: see ``Touched``."""
        found: int | None = getattr(current("basis"), "basis", None)
        return found
