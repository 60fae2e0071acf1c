"""What may stand in a state: values that never change, containers that can be tracked, and anything else."""

import re
from collections import Counter, defaultdict, deque
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePosixPath, PureWindowsPath
from types import BuiltinFunctionType, FunctionType
from typing import Any
from uuid import UUID

import msgspec

from framework.orb.state.base import Keeper
from framework.orb.state.changes import MISSING, Change
from framework.orb.state.mappings import TrackedCounter, TrackedDefaultDict, TrackedDict, TrackedOrderedDict
from framework.orb.state.sequences import TrackedDeque, TrackedList
from framework.orb.state.sets import TrackedSet

#: Never change, whatever they hold.
ATOMS = frozenset(
    (
        *(bool, int, float, complex, str, bytes, type(None), range, type(MISSING)),
        *(date, datetime, time, timedelta, timezone, Decimal, Fraction, UUID, re.Pattern),
        *(PurePosixPath, PureWindowsPath, FunctionType, BuiltinFunctionType),
    )
)

_MAPPINGS = (TrackedDict, TrackedDefaultDict, TrackedCounter, TrackedOrderedDict)
_KINDS: dict[type[Any], type[Any]] = {
    kind.plain_type: kind for kind in (*_MAPPINGS, TrackedList, TrackedSet, TrackedDeque)
}
PLAIN_TYPES = frozenset(_KINDS)


def never_changes(value: Any) -> bool:
    """Known to, as a whole: a tuple with a list in it can change."""
    kind = type(value)
    if kind in ATOMS or isinstance(value, Enum | type):
        return True
    if kind is tuple or kind is frozenset or (isinstance(value, tuple) and not hasattr(value, "__dict__")):
        return all(map(never_changes, value))
    if isinstance(value, msgspec.Struct):
        return kind.__struct_config__.frozen and all(never_changes(getattr(value, f)) for f in kind.__struct_fields__)
    if is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        own = {f.name for f in fields(kind)}
        return own.issuperset(getattr(value, "__dict__", ())) and all(never_changes(getattr(value, f)) for f in own)
    return False


class _Nobody:
    log: list[Change] | None = None


def tracked_copy(value: Any, keeper: Keeper) -> Any:
    """A tracked one with the same elements. ``value`` is of one of the plain types."""
    kind = _KINDS[type(value)]
    made = kind.plain_type.__new__(kind)
    made.keeper = _Nobody()  # filling it is no change
    if isinstance(value, deque):
        deque.__init__(made, value, value.maxlen)
    elif isinstance(value, defaultdict):
        defaultdict.__init__(made, value.default_factory, value)
    elif isinstance(value, Counter):
        dict.update(made, value)
    else:
        kind.plain_type.__init__(made, value)
    made.keeper = keeper
    return made
