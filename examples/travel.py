"""Objects that call objects: an agent books a car and a room at the same time, or nothing (objects/travel.py).

python -m examples.travel [--at host:port,...]
"""

from examples.nodes import running
from framework import Orb, RemoteError, connect
from objects.travel import Agent, Car, Hotel


def goes_well(orb: Orb) -> None:
    agent = orb.object(Agent, "agent")
    offer = agent.inquire("friday", ["hotel", "inn"])  # pcast to two hotels; drec: the first answer counts
    print(f"the first to answer has {offer.free} rooms on friday")
    trip = agent.book("ann", "friday")  # pcast to car and hotel; crec: both must answer
    print(f"ann goes on {trip.day} with car {trip.car} and sleeps in room {trip.room}")
    print(f"left on friday: {left(orb, 'friday')}")
    agent.cancel("ann", "friday")
    print(f"ann stays at home; left on friday: {left(orb, 'friday')}")


def hotel_is_full(orb: Orb) -> None:
    """The car is booked, the hotel refuses: the car is free again, and nothing has happened."""
    agent, hotel = orb.object(Agent, "agent"), orb.object(Hotel, "hotel")
    rooms = [hotel.book("saturday") for _ in range(hotel.free("saturday"))]
    print(f"all rooms are taken; left on saturday: {left(orb, 'saturday')}")
    try:
        agent.book("bob", "saturday")
    except RemoteError as error:
        print("bob hears:", error)
    print(f"trips of bob: {agent.trips('bob')}; left on saturday: {left(orb, 'saturday')}")
    for room in rooms:
        hotel.cancel("saturday", room)


def left(orb: Orb, day: str) -> str:
    return f"{orb.object(Car, 'car').free(day)} cars, {orb.object(Hotel, 'hotel').free(day)} rooms"


if __name__ == "__main__":
    with running() as addresses, connect(addresses) as orb:
        goes_well(orb)
        hotel_is_full(orb)
