"""Travel across objects: many customers want a car and a room on the same days. Each gets both, or nothing.

python -m examples.booking
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from examples.stage import Stage, stage
from framework import Orb, RemoteError
from objects.travel import Agent, Car, Hotel, Trip

DAYS = ("thursday", "friday", "saturday", "sunday")
CUSTOMERS = 9
SCARCE = "sunday"  # one of the two rooms is taken beforehand


def wish(s: Stage, number: int) -> list[Trip]:
    """One customer, through one of the nodes: what it got."""
    trips = []
    with s.connect(s.names[number % 3]) as orb:
        agent = orb.object(Agent, "agent")
        for day in (*DAYS[number % 4 :], *DAYS[: number % 4]):
            try:
                trips.append(agent.book(f"customer {number}", day))
            except RemoteError:
                pass  # sold out: said below, for all of them
    return trips


def judge(s: Stage, orb: Orb, trips: list[Trip]) -> None:
    booked = Counter(trip.day for trip in trips)
    s.say("Trips by day: " + ", ".join(f"{day} {booked[day]}" for day in DAYS))
    for what in ("car", "room"):
        twice = [n for n in Counter((t.day, getattr(t, what)) for t in trips).values() if n > 1]
        s.check(not twice, f"no {what} was given to two customers")
    cars = {d: 2 - orb.object(Car, "car").free(d) for d in DAYS}
    rooms = {d: 2 - orb.object(Hotel, "hotel").free(d) - (d == SCARCE) for d in DAYS}
    s.check(cars == rooms == {d: booked[d] for d in DAYS}, "cars and rooms that are taken belong to trips, all of them")
    s.check(all(booked[d] == (1 if d == SCARCE else 2) for d in DAYS), "nothing stayed free that somebody wanted")
    plans = orb.crec(orb.mcast(orb.object(Hotel, "hotel").plan.request()))
    s.check(len({str(p.value) for p in plans}) == 1, f"{len(plans)} replicas of the hotel have the same plan")


if __name__ == "__main__":
    with (
        stage(__doc__, car="objects.travel:Car", hotel="objects.travel:Hotel", agent="objects.travel:Agent") as s,
        s.connect() as orb,
    ):
        s.say("A rent-a-car and a hotel have two places each for a day; an agent books at both of them, in one act.")
        orb.object(Hotel, "hotel").book(SCARCE)
        s.say(f"One room on {SCARCE} is gone already. Who gets a car there but no room gets nothing.")
        s.say(f"{CUSTOMERS} customers want a trip on each of {len(DAYS)} days, all at once, through all three nodes.")
        with ThreadPoolExecutor(CUSTOMERS) as pool:
            trips = [t for found in pool.map(lambda n: wish(s, n), range(CUSTOMERS)) for t in found]
        judge(s, orb, trips)
