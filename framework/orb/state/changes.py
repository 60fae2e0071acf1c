"""One change to a place in the state, and how it is taken back while others may have changed the same place since.

A change is a tuple: the function that takes it back, then its arguments: holder, place, what was there, what came, ...
Holders are dicts (also the attributes of an object), lists, deques and sets, plain or tracked, known by identity.

- *key*: the old value goes back where the new one still stands. Where another number stands by now, the difference is
  taken off: two deposits on one account. Anything else stays as the later one left it.
- *elements* of a set are taken out and put in one by one.
- *splice*: elements of a list or deque were replaced by others. Is that part as it was left, the exact content goes
  back. Else what came is removed wherever it is found by now, and what went is put back at its old place, as far as the
  list still reaches; a mere change of order stays.
- *order* of an OrderedDict and *rotation* of a deque: as before, if they still have these keys, this length.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

Change = tuple[Any, ...]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()

_NUMBERS = (int, float, Decimal, Fraction)


def take_back(change: Change) -> None:
    change[0](*change[1:])


def stored(change: Change) -> Iterator[tuple[Any, Any]]:
    """The values that the change has put into its holder, each with its place."""
    kind, _, place, _, came, *_ = change
    if kind is key:
        yield place, came
    else:
        yield from ((place if place is None else place + n, value) for n, value in enumerate(came))


def key(holder: Any, place: Any, old: Any, new: Any) -> None:
    now = _at(holder, place)
    if same(now, new):
        _put(holder, place, old)
    elif _are_numbers(now, old, new):
        _put(holder, place, now + _number(old) - _number(new))


def elements(holder: set[Any], _place: None, gone: Iterable[Any], came: Iterable[Any]) -> None:
    holder.difference_update(came)
    holder.update(gone)


def splice(holder: Any, index: int, gone: Sequence[Any], came: Sequence[Any], length: int) -> None:
    """``length``: of the whole, after the change."""
    if len(holder) == length and all(same(holder[index + n], value) for n, value in enumerate(came)):
        _replace(holder, index, len(came), gone)
        return
    for value in reversed(_without(came, gone)):
        _remove(holder, value)
    _replace(holder, min(index, len(holder)), 0, _without(gone, came))


def order(holder: OrderedDict[Any, Any], _place: None, keys: Sequence[Any], _came: Iterable[Any]) -> None:
    """Keys that others have added stay behind the old ones."""
    known = set(keys)
    later = [k for k in holder if k not in known]
    for k in (*keys, *later):
        if k in holder:
            holder.move_to_end(k)


def end(holder: OrderedDict[Any, Any], place: Any, last: bool, _came: Iterable[Any]) -> None:
    """A key that was at one end."""
    if place in holder:
        holder.move_to_end(place, last=last)


def rotation(holder: deque[Any], steps: int, length: int, _came: Iterable[Any]) -> None:
    if len(holder) == length:
        holder.rotate(-steps)


def same(a: Any, b: Any) -> bool:
    """The very same, or of one type and equal. What cannot be compared is not the same."""
    if a is b:
        return True
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False


def _at(holder: Any, place: Any) -> Any:
    if isinstance(holder, dict):
        return dict.get(holder, place, MISSING)
    return holder[place] if place < len(holder) else MISSING


def _put(holder: Any, place: Any, value: Any) -> None:
    if value is MISSING:
        del holder[place]
    else:
        holder[place] = value


def _replace(holder: Any, index: int, count: int, values: Sequence[Any]) -> None:
    if isinstance(holder, list):
        holder[index : index + count] = values
        return
    holder.rotate(-index)
    for _ in range(count):
        holder.popleft()
    if holder.maxlen is not None:  # others may have filled it
        values = values[: holder.maxlen - len(holder)]
    holder.extendleft(reversed(values))
    holder.rotate(index)


def _without(values: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The values that are not among the others; one for one, if they are there several times."""
    others_left = Counter(map(id, others))
    out = []
    for value in values:
        if others_left[id(value)]:
            others_left[id(value)] -= 1
        else:
            out.append(value)
    return out


def _remove(holder: Any, value: Any) -> None:
    """The very same element if it is there, else an equal one; the last of them."""
    equal = None
    for index in reversed(range(len(holder))):
        if holder[index] is value:
            del holder[index]
            return
        if equal is None and same(holder[index], value):
            equal = index
    if equal is not None:
        del holder[equal]


def _are_numbers(now: Any, old: Any, new: Any) -> bool:
    """Of kinds that can be added: ints with any other kind, but no floats with Decimals."""
    kinds = {type(v) for v in (now, old, new) if v is not MISSING}
    return now is not MISSING and kinds <= set(_NUMBERS) and len(kinds - {int}) <= 1


def _number(value: Any) -> Any:
    return 0 if value is MISSING else value
