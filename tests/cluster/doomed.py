"""A client that is killed: ``python -m tests.cluster.doomed ADDRESSES TAG``. It tells each line that was answered."""

import sys
from concurrent.futures import wait

from framework import connect
from tests.cluster.things import Agent, Journal


def main(addresses: str, tag: str) -> None:
    with connect(addresses, timeout=60.0) as orb:
        journal, agent = orb.object(Journal, "journal"), orb.object(Agent, "agent")
        number = 0
        while True:
            numbers = range(number, number + 5)
            later = [journal.write.submit(f"{tag}-{i}") for i in numbers]
            booked = agent.book.submit(tag)
            journal.count.oneway(tag)
            wait([*later, booked])
            for i, future in zip(numbers, later, strict=True):
                future.result()
                print(f"{tag}-{i}", flush=True)
            number += 5


if __name__ == "__main__":
    main(*sys.argv[1:])
