"""The travel agency of P0 §1: book-car on a rent-a-car object and book-room on a hotel, in parallel (paracast).

Everything about one day conflicts, nothing about different days does. So the matrix is left out, since then
everything conflicts that is not readonly, and the keys do the rest.
"""

from collections.abc import Sequence

from framework import Object, method


class SoldOutError(Exception):
    """Nothing is left on that day."""


class NotBookedError(Exception):
    """There is no such booking to cancel."""


class Bookings(Object):
    """Some places of one kind, numbered from 1, each booked by the day."""

    def __init__(self, places: int = 2) -> None:
        self.places = places
        self.booked: dict[str, list[int]] = {}

    @method(key="day")
    def book(self, day: str) -> int:
        """The number of the place that was booked: the lowest free one."""
        number = self._first_free(day)
        self._take(day, number)
        return number

    @method(key="day")
    def cancel(self, day: str, number: int) -> None:
        taken = self.booked.get(day, [])
        if number not in taken:
            raise NotBookedError(f"{number} is not booked on {day}")
        taken.remove(number)
        if not taken:
            del self.booked[day]  # a day without bookings is not in the state: equal states, equal digests

    @method(key="day", readonly=True)
    def free(self, day: str) -> int:
        return self.places - len(self.booked.get(day, []))

    def _first_free(self, day: str) -> int:
        taken = self.booked.get(day, [])
        for number in range(1, self.places + 1):
            if number not in taken:
                return number
        raise SoldOutError(f"nothing is free on {day}")

    def _take(self, day: str, number: int) -> None:
        self.booked[day] = sorted([*self.booked.get(day, []), number])


class Car(Bookings):
    """Rent-a-car: ``book`` is the paper's book-car."""


class Hotel(Bookings):
    """``book`` is the paper's book-room. A stay is booked for all its days or for none."""

    @method(key=lambda days: days)
    def stay(self, days: list[str]) -> list[int]:
        """A room for each of the days, not always the same one. One key for each day."""
        wanted = _once(days)
        numbers = [self._first_free(day) for day in wanted]  # raises before anything is changed
        for day, number in zip(wanted, numbers, strict=True):
            self._take(day, number)
        return numbers

    @method(readonly=True)
    def plan(self) -> dict[str, list[int]]:
        """All that is booked; without key, so it meets every day."""
        return {day: list(numbers) for day, numbers in sorted(self.booked.items())}


def _once(days: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(days))
