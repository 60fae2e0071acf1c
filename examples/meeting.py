"""Meetings of people whose diaries are objects: all of them, one of them, enough of them; or nothing (P1 §2.4-2.5).

python -m examples.meeting
"""

from examples.stage import Stage, stage
from framework import Orb, RemoteError
from objects.diary import Diary

PEOPLE = ("ann", "bob", "cem")


def all_of_them(s: Stage, orb: Orb) -> None:
    """Atomic: whoever cannot come prevents it for all."""
    diaries = [orb.object(Diary, name) for name in PEOPLE]
    diaries[2].book("monday", "dentist")
    try:
        orb.atomic(*(d.book.request("monday", "planning") for d in diaries))
        s.check(False, "a meeting with cem, who is at the dentist, was refused")
    except RemoteError as error:
        s.say(f"Planning on monday: {error}")
    s.check([d.on("monday") for d in diaries] == ["", "", "dentist"], "ann and bob are free again on monday")
    orb.atomic(*(d.book.request("tuesday", "planning") for d in diaries))
    s.check([d.on("tuesday") for d in diaries] == ["planning"] * 3, "on tuesday all three plan")


def one_of_them(s: Stage, orb: Orb) -> None:
    """Alternative: the first one who is free; the others never hear of it."""
    diaries = [orb.object(Diary, name) for name in PEOPLE]
    diaries[0].book("friday", "holiday")
    who = orb.alternative(*(d.book.request("friday", "on duty") for d in diaries))
    s.check(who.object == "bob", "bob is on duty on friday, for ann is away")
    s.check(diaries[2].on("friday") == "", "cem is free on friday")


def enough_of_them(s: Stage, orb: Orb) -> None:
    """At least two of three; else nobody."""
    diaries = [orb.object(Diary, name) for name in PEOPLE]
    there = orb.some(2, *(d.book.request("monday", "review") for d in diaries))
    s.check([one.object for one in there] == ["ann", "bob"], "two of three are enough for the review")
    diaries[0].book("sunday", "hike")
    diaries[1].book("sunday", "nap")
    try:
        orb.some(2, *(d.book.request("sunday", "review") for d in diaries))
        s.check(False, "one of three is too few")
    except RemoteError as error:
        s.say(f"A review on sunday: {error}")
    s.check(diaries[2].on("sunday") == "", "cem alone holds no review on sunday")


if __name__ == "__main__":
    diary = "objects.diary:Diary"
    with stage(__doc__, ann=diary, bob=diary, cem=diary) as s, s.connect() as orb:
        all_of_them(s, orb)
        one_of_them(s, orb)
        enough_of_them(s, orb)
