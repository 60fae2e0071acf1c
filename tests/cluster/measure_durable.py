"""python -m tests.cluster.measure_durable: what a durable object costs, beside the same one that is not, in one run.

Three processes; one client with 1 or 100 calls under way. Rounds in turns, medians. Deposits are compatible;
withdrawals from one account conflict (a hot key), those from a hundred accounts mostly do not.
"""

import statistics
import time
from collections import deque
from itertools import count

from framework.testing import cluster
from objects.bank import Bank
from tests.cluster.accounts import Vault

CALLS, ROUNDS = 300, 3
ACCOUNTS = [f"a{i}" for i in range(100)]


def rate(call, at_once):
    waiting, start = deque(), time.perf_counter()
    for _ in range(CALLS):
        waiting.append(call())
        if len(waiting) >= at_once:
            waiting.popleft().result()
    while waiting:
        waiting.popleft().result()
    return CALLS / (time.perf_counter() - start)


def main():
    with cluster({"bank": Bank, "vault": Vault}, 3, processes=True) as c:
        orb = c.connect(timeout=60.0)
        objects = {"memory": orb.object(Bank, "bank"), "durable": orb.object(Vault, "vault")}
        for target in objects.values():
            for account in ("ann", *ACCOUNTS):
                target.deposit(account, 10**9)
        number = count()
        found = {}
        for _ in range(ROUNDS):
            for name, target in objects.items():
                ways = {
                    "deposit": lambda t=target: t.deposit.submit("ann", 1),
                    "hot key": lambda t=target: t.withdraw.submit("ann", 1),
                    "many keys": lambda t=target: t.withdraw.submit(ACCOUNTS[next(number) % 100], 1),
                }
                for what, call in ways.items():
                    for at_once in (1, 100):
                        found.setdefault((what, at_once, name), []).append(rate(call, at_once))
    for what in ("deposit", "hot key", "many keys"):
        for at_once in (1, 100):
            memory, durable = (statistics.median(found[what, at_once, n]) for n in ("memory", "durable"))
            ratio = durable / memory
            print(f"{what:9} {at_once:4} at once: {memory:6.0f}/s in memory, {durable:6.0f}/s durable, {ratio:.2f}")


if __name__ == "__main__":
    main()
