"""Every way to call an object.

python -m examples.hello [--at host:port,...]
"""

from examples.nodes import running
from framework import ALL, Orb, RemoteError, connect
from objects.bank import Bank
from objects.travel import Car, Hotel


def calls(orb: Orb) -> None:
    bank = orb.object(Bank, "bank")  # typed: completion, mypy
    bank.deposit("ann", 5)  # synchronous; a majority of the replicas has performed it
    bank.deposit.with_(receipt=ALL, timeout=5.0)("ann", 5)  # all of them have
    later = [bank.deposit.submit("bob", n) for n in range(1, 11)]  # asynchronous: futures
    for future in later:
        future.result()
    bank.deposit.oneway("bob", 1)  # one-way; what follows comes after it
    print("ann has", bank.balance("ann"), "and bob has", bank.balance("bob"))
    try:
        bank.withdraw("ann", 1000)
    except RemoteError as error:
        print("refused:", error)


def transmissions(orb: Orb) -> None:
    car, hotel = orb.object(Car, "car"), orb.object(Hotel, "hotel")
    one = orb.srec(orb.ucast(car.free.request("friday")))  # one request, one replica, its reply
    print("one replica says:", one.value, "cars are free")
    sent = orb.pcast(car.free.request("friday"), hotel.free.request("friday"))  # different requests, one act
    for reply in sorted(orb.crec(sent), key=lambda reply: reply.replica):  # all replies
        print(f"{reply.replica} says: {reply.value} are free")


if __name__ == "__main__":
    with running() as addresses, connect(addresses) as orb:
        calls(orb)
        transmissions(orb)
