"""The diaries of P1 §2.5: people who are to meet, each with an agent that knows when they are free.

What is about one day conflicts, but for two who free it; nothing about different days does. A meeting is booked in
several diaries, or in none (``orb.atomic``), or in enough of them (``orb.some``).
"""

from framework import Object, conflict_matrix, method


class BusyError(Exception):
    """There is something else on that day."""


@conflict_matrix(book=("book", "free", "on"), free=("on",))
class Diary(Object):
    def __init__(self) -> None:
        self.days: dict[str, str] = {}

    @method(key="day")
    def book(self, day: str, what: str) -> str:
        """What it is booked for; refused if the day is taken."""
        if day in self.days:
            raise BusyError(f"{day} is taken: {self.days[day]}")
        self.days[day] = what
        return what

    @method(key="day")
    def free(self, day: str) -> None:
        """Nothing is on that day any more."""
        self.days.pop(day, None)

    @method(key="day", readonly=True)
    def on(self, day: str) -> str:
        return self.days.get(day, "")
