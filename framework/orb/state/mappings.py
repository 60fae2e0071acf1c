"""Tracked dict, defaultdict, Counter and OrderedDict. All changes are made of ``__setitem__`` and ``__delitem__``."""

from collections import Counter, OrderedDict, defaultdict
from typing import Any

from framework.orb.state import changes
from framework.orb.state.base import Tracked
from framework.orb.state.changes import MISSING


class _Mapping(Tracked):
    """Stands before the plain type among the bases."""

    __slots__ = ()

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        old = dict.get(self, key, MISSING)
        super().__setitem__(key, value)  # type: ignore[misc]
        log = self.keeper.log
        if log is not None:
            log.append((changes.key, self, key, old, value))

    def __delitem__(self: Any, key: Any) -> None:
        old = dict.get(self, key, MISSING)
        super().__delitem__(key)  # type: ignore[misc]
        log = self.keeper.log
        if log is not None and old is not MISSING:  # a Counter forgives
            log.append((changes.key, self, key, old, MISSING))

    def pop(self: Any, key: Any, default: Any = MISSING) -> Any:
        if key in self:
            value = self[key]
            del self[key]
            return value
        if default is MISSING:
            raise KeyError(key)
        return default

    def popitem(self: Any) -> tuple[Any, Any]:
        return self._pop_end(True)  # type: ignore[no-any-return]

    def _pop_end(self: Any, last: bool) -> tuple[Any, Any]:
        if not self:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self) if last else iter(self))
        return key, self.pop(key)

    def clear(self: Any) -> None:
        for key in reversed(list(self)):
            del self[key]

    def setdefault(self: Any, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self: Any, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self: Any, other: Any) -> Any:
        self.update(other)
        return self


class TrackedDict(_Mapping, dict[Any, Any]):
    __slots__ = ("keeper",)
    plain_type = dict


class TrackedDefaultDict(_Mapping, defaultdict[Any, Any]):
    __slots__ = ("keeper",)
    plain_type = defaultdict

    def as_plain(self) -> Any:
        return defaultdict(self.default_factory, self)


class TrackedCounter(_Mapping, Counter[Any]):
    __slots__ = ("keeper",)
    plain_type = Counter

    def as_plain(self) -> Any:
        return Counter(dict(self))

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, count in Counter(*args, **kwargs).items():
            self[key] = count + self[key] if key in self else count

    __ior__ = Counter.__ior__


class TrackedOrderedDict(_Mapping, OrderedDict[Any, Any]):
    """Its order counts when two are compared. So a key that goes from the middle costs time in proportion to all keys;
    one that goes from either end does not."""

    __slots__ = ("keeper",)
    plain_type = OrderedDict

    def __delitem__(self, key: Any) -> None:
        self._note_place(key)
        super().__delitem__(key)

    def popitem(self, last: bool = True) -> tuple[Any, Any]:
        return self._pop_end(last)

    def move_to_end(self, key: Any, last: bool = True) -> None:
        self._note_place(key)
        super().move_to_end(key, last)

    def _note_place(self, key: Any) -> None:
        """Noted before the change: taken back after it, when the key is there again."""
        log = self.keeper.log
        if log is None or key not in self:
            return
        if key == next(reversed(self)):
            log.append((changes.end, self, key, True, ()))
        elif key == next(iter(self)):
            log.append((changes.end, self, key, False, ()))
        else:
            log.append((changes.order, self, None, list(self), ()))
