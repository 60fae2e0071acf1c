"""A partition and its healing: one node is cut off from two. The two go on, the one refuses, and then it catches up.

python -m examples.partition
"""

import time

from examples.stage import PATIENCE, Stage, stage
from examples.writers import Writers
from framework import OboError, Orb, Unavailable
from objects.bank import Bank


def deposit(orb: Orb, _: int) -> None:
    orb.object(Bank, "bank").deposit("ann", 1)


def until_isolated(s: Stage, name: str) -> bool:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if s.status().get(name, {}).get("group", {}).get("state") == "isolated":
            return True
        time.sleep(0.1)
    return False


def alone(s: Stage) -> None:
    """What a client sees that knows no other node than the one that is cut off."""
    with s.connect("n3", timeout=3.0, only=True) as orb:
        bank = orb.object(Bank, "bank")
        s.say("n3 is cut off from n1 and n2.")
        s.cut_off("n3")
        s.check(until_isolated(s, "n3"), "n3 knows that it hears too few to be a majority")
        try:
            bank.deposit("ann", 1_000_000)
            s.check(False, "n3 refuses to write")
        except Unavailable as error:
            s.check(True, f"n3 refuses to write: {str(error).partition(';')[0]}")
        except OboError as error:
            s.check(False, f"n3 refuses to write, and says that it did not happen; it said {type(error).__name__}")
        old = bank.balance.with_(stale=True)("ann")
    s.say(f"A reader who takes what may be old gets it at n3 all the same: ann had {old}.")


if __name__ == "__main__":
    with stage(__doc__, bank="objects.bank:Bank") as s:
        orbs = [s.connect(name) for name in ("n1", "n2", "n3")]
        with Writers(orbs, deposit, pause=0.01) as writers:
            s.say("Three clients, one at each node, deposit 1 for ann again and again.")
            time.sleep(1.5)
            alone(s)
            before = len(writers.done)
            time.sleep(1.5)
            s.check(len(writers.done) > before, f"n1 and n2 go on: {len(writers.done) - before} deposits meanwhile")
            s.say(f"The client of n3 has gone to another node; the longest wait was {writers.longest_since():.1f} s.")
            s.say("The wires are mended.")
            s.heal()
            s.check(s.wait_whole(), "n3 is a member again, and has the state of the others")
            time.sleep(1.0)
        with s.connect("n3", only=True) as orb:
            replies = orb.crec(orb.mcast(orb.object(Bank, "bank").balance.request("ann")))
        s.check(not writers.errors, f"no client saw an error{': ' + writers.errors[0] if writers.errors else ''}")
        s.check([r.value for r in replies] == [len(writers.done)] * 3, f"all replicas say {len(writers.done)}, as told")
        for orb in orbs:
            orb.close()
