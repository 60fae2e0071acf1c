"""A state that was taken apart is what it was, whatever becomes of the object afterwards."""

from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from framework import Object
from framework.declare.portable.decode import decoded
from framework.declare.portable.encode import state_of, written
from framework.declare.portable.fingerprint import fingerprint, fingerprint_of
from framework.declare.portable.still import still

LONG = 700_000  # bytes: more than a piece


@dataclass
class Line:
    name: str
    marks: list[int] = field(default_factory=list)


class Shop(Object):
    def __init__(self) -> None:
        self.lines: dict[str, Line] = {"a": Line("a", [1])}
        self.names = ["x", ["y", {"z": {1, 2}}]]
        self.queue = deque([1, 2], maxlen=5)
        self.rows: Any = defaultdict(list, {"k": [1]})
        self.counts = Counter("aab")
        self.places = OrderedDict(b=1, a=2)
        self.sum = Decimal("1.5")
        self.number = 1 << 90
        self.text = "ä" * LONG
        self.block = bytes(range(256)) * 4000
        self.buffer = bytearray(b"abc")
        self.pair = (1, [2])

    def change(self) -> None:
        self.lines["a"].marks.append(2)
        self.lines["b"] = Line("b")
        self.names[1][1]["z"].add(3)  # type: ignore[index, union-attr]
        self.queue.append(3)
        self.rows["k"].append(2)
        self.counts["a"] += 1
        self.places.move_to_end("b")
        self.buffer += b"d"
        self.pair[1].append(3)
        self.text = self.block = None  # type: ignore[assignment]


def kept(shop: Shop, most: int = 1000) -> dict[str, Any]:
    taken = still(Shop, state_of(shop), most)
    assert taken is not None
    return taken


def test_it_is_the_state_of_that_moment():
    shop, like = Shop(), Shop()
    taken, word = kept(shop), fingerprint(shop)
    shop.change()
    assert fingerprint(shop) != word
    assert fingerprint_of(Shop, taken) == word
    back = decoded(Shop(), written(Shop, taken))
    assert back == state_of(like)
    assert list(back["places"]) == ["b", "a"] and back["queue"].maxlen == 5 and back["rows"].default_factory is list


def test_it_can_be_read_more_than_once_and_gives_the_bytes_that_the_object_itself_gives():
    shop = Shop()
    taken, direct = kept(shop), list(shop.get_state())
    assert list(written(Shop, taken)) == direct
    assert list(written(Shop, taken)) == direct


def test_nothing_large_is_copied_that_does_not_change():
    shop = Shop()
    taken = kept(shop)
    assert taken["text"] is shop.text and taken["block"] is shop.block


@pytest.mark.parametrize("value", [list(range(200)), [[n] for n in range(60)], {n: n for n in range(60)}])
def test_many_values_are_too_many(value: Any):
    shop = Shop()
    shop.names = value
    assert still(Shop, state_of(shop), 100) is None
    assert still(Shop, state_of(shop), 1000) is not None


def test_a_large_array_is_too_much_because_it_is_copied():
    shop = Shop()
    shop.buffer = bytearray(1 << 20)
    assert still(Shop, state_of(shop), 1000) is None
    assert still(Shop, state_of(shop), 2000) is not None


def test_what_cannot_travel_and_what_holds_itself_is_left_to_others():
    shop = Shop()
    shop.names = [object()]  # type: ignore[list-item]
    assert still(Shop, state_of(shop), 1000) is None
    circle: list[Any] = []
    circle.append(circle)
    shop.names = circle
    assert still(Shop, state_of(shop), 1000) is None


def test_who_takes_a_fingerprint_of_large_values_can_make_pauses():
    heard: list[int] = []
    fingerprint_of(Shop, kept(Shop()), heard.append)
    assert len(heard) == 2 and sum(heard) > LONG
