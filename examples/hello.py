"""Every way to call an object. Start the nodes of examples/cluster.toml first (docs/orb.md), then:

python -m examples.hello [ADDRESSES]
"""

import sys

from framework import ALL, RemoteError, connect
from objects.bank import Bank
from objects.travel import Car, Hotel

ADDRESSES = "127.0.0.1:7401,127.0.0.1:7402,127.0.0.1:7403"


def main(addresses: str = ADDRESSES) -> None:
    with connect(addresses) as orb:
        bank = orb.object(Bank, "bank")  # typed: completion, mypy
        bank.deposit("ann", 5)  # synchronous; a majority of the replicas has performed it
        bank.deposit.with_(receipt=ALL, timeout=2.0)("ann", 5)  # all of them have
        later = [bank.deposit.submit("bob", n) for n in range(1, 11)]  # asynchronous: futures
        for future in later:
            future.result()
        bank.deposit.oneway("bob", 1)  # one-way; what follows comes after it
        print("ann has", bank.balance("ann"), "and bob has", bank.balance("bob"))
        try:
            bank.withdraw("ann", 1000)
        except RemoteError as error:
            print("refused:", error)

        car, hotel = orb.object(Car, "car"), orb.object(Hotel, "hotel")
        sent = orb.pcast(car.book.request("friday"), hotel.book.request("friday"))  # different requests, one act
        for reply in orb.crec(sent):
            print(f"{reply.replica} booked number {reply.value}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
