"""The travel agency of P0 §1: book-car on a rent-a-car object and book-room on a hotel, in parallel (paracast).

Cars and hotels: everything about one day conflicts, nothing about different days does. So the matrix is left out,
since then everything conflicts that is not readonly, and the keys do the rest.

The agent calls both. What it keeps is by customer, so its own calls conflict where they are about one customer. Two
customers who want the same day meet at the car and at the hotel, not here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from framework import Object, conflict_matrix, method


class SoldOutError(Exception):
    """Nothing is left on that day."""


class NotBookedError(Exception):
    """There is no such booking to cancel."""


class NoTripError(Exception):
    """The trip cannot be had; nothing of it is booked."""


@dataclass(frozen=True)
class Trip:
    """A car and a room on one day."""

    day: str
    car: int
    room: int


@dataclass(frozen=True)
class Offer:
    """Who answered first, and how many places it has."""

    name: str
    free: int


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


@conflict_matrix(
    book=("book", "cancel", "trips"),
    cancel=("cancel", "trips"),
    inquire=(),  # it neither reads nor changes what the agent keeps
)
class Agent(Object):
    """Books a car and a room in one act, or nothing. It calls the objects ``car`` and ``hotel``."""

    def __init__(self) -> None:
        self.booked: dict[str, dict[str, Trip]] = {}

    @method(key="customer")
    def book(self, customer: str, day: str) -> Trip:
        if day in self.booked.get(customer, {}):
            raise NoTripError(f"{customer} has a trip on {day} already")
        trip = self._reserve(day)
        self.booked.setdefault(customer, {})[day] = trip
        return trip

    @method(key="customer")
    def cancel(self, customer: str, day: str) -> None:
        if day not in self.booked.get(customer, {}):
            raise NotBookedError(f"{customer} has no trip on {day}")
        trip = self.booked[customer].pop(day)
        if not self.booked[customer]:
            del self.booked[customer]
        self._give_back(trip)  # if this raises, the framework puts back what was changed above

    @method(key="customer", readonly=True)
    def trips(self, customer: str) -> list[Trip]:
        return [trip for _, trip in sorted(self.booked.get(customer, {}).items())]

    @method(readonly=True)
    def inquire(self, day: str, at: list[str]) -> Offer:
        """Ask all of these at once what is free; the first answer counts, the others are not waited for.

        Which answer is first may differ from one replica to the next. That is harmless in a readonly method. In one
        that changes state the replicas would part: there, take what is the same everywhere, as ``book`` does.
        """
        sent = self.orb.pcast(*(self.orb.object(Bookings, name).free.request(day) for name in at))
        first = self.orb.drec(sent)
        return Offer(first.object, first.value)

    def _reserve(self, day: str) -> Trip:
        """Both at the same time. If one of them refuses, raising is enough: what the other has booked is part of this
        call, and is undone with it."""
        car, hotel = self.orb.object(Car, "car"), self.orb.object(Hotel, "hotel")
        sent = self.orb.pcast(car.book.request(day), hotel.book.request(day))
        reply = {r.object: r for r in self.orb.crec(sent)}  # all replicas of one object say the same
        refused = "; ".join(f"{name}: {reply[name].error}" for name in ("car", "hotel") if not reply[name].ok)
        if refused:
            raise NoTripError(f"no trip on {day}: {refused}")
        return Trip(day, reply["car"].value, reply["hotel"].value)

    def _give_back(self, trip: Trip) -> None:
        car, hotel = self.orb.object(Car, "car"), self.orb.object(Hotel, "hotel")
        sent = self.orb.pcast(car.cancel.request(trip.day, trip.car), hotel.cancel.request(trip.day, trip.room))
        refused = [reply.error for reply in self.orb.crec(sent) if not reply.ok]
        if refused:
            raise NotBookedError(f"{trip} cannot be given back: {refused[0]}")


def _once(days: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(days))
