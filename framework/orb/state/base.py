"""What tracked containers have in common.

They are dict, list, set and their relatives of ``collections``, as containers that note what an instance changes. They
are what they replace in every other respect: subclasses that read at full speed, equal to the plain ones, shown, copied
and encoded as these. A change is noted, when it has been made, in the log of the instance that has the turn; without an
open log it is done, and nothing more.

What a copy, a slice or an operator makes of them is plain, and so is what their class makes when it is called. Only
``tracked_copy`` makes tracked ones.
"""

from typing import Any, Protocol, SupportsIndex

from framework.orb.state.changes import Change


class Keeper(Protocol):
    """Knows the log of the instance that has the turn."""

    log: list[Change] | None


class Tracked:
    __slots__ = ()
    plain_type: type[Any]
    keeper: Keeper

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.plain_type(*args, **kwargs)

    def as_plain(self) -> Any:
        """A plain one with the same elements."""
        return self.plain_type(self)

    def __repr__(self) -> str:
        return repr(self.as_plain())

    def __copy__(self) -> Any:
        return self.as_plain()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return self.as_plain().__reduce_ex__(protocol)
