"""What order costs: two counters side by side. In one, increments are compatible; in the other, everything conflicts.

python -m examples.ordering
"""

import time
from collections.abc import Callable
from concurrent.futures import Future

from examples.stage import Stage, stage
from framework import Object, Orb, method
from objects.counter import Counter

CALLS = 300  # of each client, all under way at once
CLIENTS = 3
ROUNDS = 2


class Ordered(Object):
    """A counter that tells its value to whoever increments it: so the order shows, and must be the same everywhere."""

    def __init__(self) -> None:
        self.value = 0

    @method
    def increment(self, by: int = 1) -> int:
        self.value += by
        return self.value

    @method(readonly=True)
    def show(self) -> int:
        return self.value


def burst(orbs: list[Orb], submit: Callable[[Orb], "Future[int] | Future[None]"]) -> float:
    """Seconds until all calls of all clients are answered."""
    began = time.monotonic()
    under_way = [submit(orb) for _ in range(CALLS) for orb in orbs]
    for call in under_way:
        call.result()
    return time.monotonic() - began


def waited(s: Stage, name: str) -> tuple[int, int]:
    """Requests at all replicas of an object, and those that had to wait for a conflicting one."""
    told = [one["replicas"][f"{name}@{node}"] for node, one in s.status().items()]
    return sum(t["begun"] for t in told), sum(t["waited"] for t in told)


def play(s: Stage, orbs: list[Orb]) -> None:
    total = ROUNDS * CALLS * CLIENTS
    s.say(f"{CLIENTS} clients, each at another node, increment both counters {ROUNDS * CALLS} times, by turns.")
    free = ordered = 0.0
    for _ in range(ROUNDS):
        free += burst(orbs, lambda orb: orb.object(Counter, "free").increment.submit())
        ordered += burst(orbs, lambda orb: orb.object(Ordered, "ordered").increment.submit())
    seen: dict[str, tuple[int, int]] = {name: waited(s, name) for name in ("free", "ordered")}
    for name, took in (("free", free), ("ordered", ordered)):
        begun, held = seen[name]
        s.say(
            f"{name:8} {total} calls in {took:4.1f} s, {total / took:5,.0f} a second; "
            f"{held} of {begun} requests at the replicas had to wait for another one"
        )
    s.say(f"Here and now the order took {ordered / free:.1f} times as long. It buys that each call has its own number.")
    s.check(seen["free"][1] == 0, "no increment of the free counter waited for another one")
    s.check(seen["ordered"][1] > 0, "those of the ordered counter did")


if __name__ == "__main__":
    with stage(__doc__, free="objects.counter:Counter", ordered="examples.ordering:Ordered") as s:
        orbs = [s.connect(name) for name in s.names]
        numbers = [orb.object(Ordered, "ordered").increment() for orb in orbs]  # all are awake
        for orb in orbs:
            orb.object(Counter, "free").increment()
        s.check(sorted(numbers) == [1, 2, 3], "each client got a number of its own from the ordered counter")
        play(s, orbs)
        wanted = CLIENTS * (ROUNDS * CALLS + 1)
        for counter in (orbs[0].object(Counter, "free"), orbs[0].object(Ordered, "ordered")):
            values = [r.value for r in orbs[0].crec(orbs[0].mcast(counter.show.request()))]
            s.check(values == [wanted] * 3, f"all three replicas of it say {wanted}")
        for orb in orbs:
            orb.close()
