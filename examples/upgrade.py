"""A rolling upgrade: a class gets a new method, node by node, while clients go on.

python -m examples.upgrade
"""

import time

from examples.stage import stage
from examples.writers import Writers
from framework import NoSuchMethod, Orb

FIRST = '''"""The shop, version 1."""
from framework import Object, method

class Shop(Object):
    def __init__(self) -> None:
        self.sold: dict[str, int] = {}

    @method(key="item")
    def sell(self, item: str, count: int) -> None:
        self.sold[item] = self.sold.get(item, 0) + count

    @method(key="item", readonly=True)
    def sales(self, item: str) -> int:
        return self.sold.get(item, 0)
'''

SECOND = '''"""The shop, version 2: things can be given back."""
from collections.abc import Iterable

from framework import Object, method

class Shop(Object):
    def __init__(self) -> None:
        self.sold: dict[str, int] = {}
        self.returned: dict[str, int] = {}

    def set_state(self, chunks: Iterable[bytes]) -> None:
        super().set_state(chunks)
        vars(self).setdefault("returned", {})    # the state may come from a node that has version 1

    @method(key="item")
    def sell(self, item: str, count: int) -> None:
        self.sold[item] = self.sold.get(item, 0) + count

    @method(key="item")
    def give_back(self, item: str, count: int) -> None:
        self.returned[item] = self.returned.get(item, 0) + count

    @method(key="item", readonly=True)
    def sales(self, item: str) -> int:
        return self.sold.get(item, 0) - self.returned.get(item, 0)
'''


def sell(orb: Orb, _: int) -> None:
    orb.object("shop").sell("pen", 1)


if __name__ == "__main__":
    with stage(__doc__, prepare={"shop.py": FIRST}, shop="shop:Shop") as s:
        orbs = [s.connect(name) for name in s.names]
        try:
            orbs[0].object("shop").give_back("pen", 1)
            s.check(False, "version 1 knows no give_back")
        except NoSuchMethod:
            s.check(True, "version 1 knows no give_back")
        (s.directory / "shop.py").write_text(SECOND, encoding="utf-8")
        with Writers(orbs, sell, pause=0.01) as writers:
            s.say("Three clients sell pens. Version 2 is installed; nodes take it when they start.")
            time.sleep(1.0)
            for name in s.names:
                before = len(writers.done)
                s.say(
                    f"{name} is told to stop: it answers what is under way, leaves the group, and ends. Then it starts."
                )
                s.stop(name)
                s.start(name)
                s.check(len(writers.done) > before, f"{len(writers.done) - before} pens were sold meanwhile")
                s.say(f"{name} has version 2 and its state; the longest wait was {writers.longest_since():.1f} s.")
        shop = orbs[0].object("shop")
        sold = len(writers.done)
        s.check(not writers.errors, f"no client saw an error{': ' + writers.errors[0] if writers.errors else ''}")
        s.check(shop.sales("pen") == sold, f"all {sold} pens that were sold are in the books")
        shop.give_back("pen", 5)
        values = [r.value for r in orbs[0].crec(orbs[0].mcast(shop.sales.request("pen")))]
        s.check(values == [sold - 5] * 3, "five are given back with the new method, and all replicas know")
        for orb in orbs:
            orb.close()
