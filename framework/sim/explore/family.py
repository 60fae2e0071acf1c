"""Tiny programs made by chance: the shapes in which transactions went wrong.

A root object ``f``, on one node or several, calls ``g`` and ``h`` two to four times, by synchronous, asynchronous and
one-way calls, against one or two other clients; some methods raise, and some transactions are vetoed. One seed, one
program.
"""

from random import Random
from typing import Final

import msgspec

from framework.com.receipt import CREC, DREC, SREC, Receipt, majority
from framework.sim.explore.scenario import Act, Choices, Client, Deed, Scenario, Script, Target, Thing

_CONFLICTS: Final = (("i", "r"), ("i", "w"), ("r", "w"), ("w", "w"))  # i conflicts with no other i
_SYNC: Final[tuple[Deed, ...]] = ("sync", "async", "oneway")


def family(seed: int) -> Scenario:
    """The program of a seed."""
    return _Maker(seed).scenario()


class _Maker:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = Random(f"family/{seed}")
        self.nodes = self.chance.choice([("n1", "n2"), ("n1", "n2", "n3"), ("n1", "n2", "n3")])
        self.where = {"f": self._some([1, 2, 2]), "g": self._some([2, 2, 3]), "h": self._some([1, 2, 2, 3])}

    def _some(self, counts: list[int]) -> tuple[str, ...]:
        count = min(len(self.nodes), self.chance.choice(counts))
        return tuple(sorted(self.chance.sample(self.nodes, count)))

    def scenario(self) -> Scenario:
        chance = self.chance
        below = chance.choice([["g"], ["g"], ["g", "h"]])
        acts = {("f", "w"): tuple(self._act(_SYNC, below) for _ in range(chance.choice([2, 3, 3, 4])))}
        if chance.random() < 0.4:
            acts["g", chance.choice("wi")] = (self._act(_SYNC, ["h"]),)
        fails = [key for key in (("f", "w"), ("g", "w"), ("g", "i"), ("h", "w")) if chance.random() < 0.15]
        scripts = {key: Script(acts.get(key, ()), key in fails) for key in {**acts, **dict.fromkeys(fails)}}
        clients = [Client("a", chance.choice(self.nodes), self._first())]
        for name in "bc"[: chance.choice([1, 1, 2])]:
            clients.append(Client(name, chance.choice(self.nodes), self._others()))
        vetoes = tuple(("a/1", node) for node in self.nodes if chance.random() < 0.25)
        choices = Choices(vetoes=vetoes, ends=chance.random() < 0.6)
        reads = {name: () if (name, "r") in scripts else ("r",) for name in "fgh"}
        things = tuple(Thing(name, self.where[name], _CONFLICTS, reads[name]) for name in "fgh")
        return Scenario(f"family{self.seed}", self.nodes, things, tuple(clients), scripts, choices, True)

    def _first(self) -> tuple[Act, ...]:
        """A call of f; or a transaction of two calls."""
        chance = self.chance
        if chance.random() < 0.5:
            return (self._root(),)
        calls = [self._root() if chance.random() < 0.5 else self._act(_SYNC[:2], ["g", "h"]) for _ in range(2)]
        end: Deed = chance.choice(["commit", "commit", "abort"])
        return Act("begin"), *[msgspec.structs.replace(call, inside=True) for call in calls], Act(end)

    def _others(self) -> tuple[Act, ...]:
        chance = self.chance
        kinds: tuple[Deed, ...] = ("sync", "oneway")
        return tuple(
            chance.choice([self._root(), self._act((*kinds, "oneway"), ["g", "h"]), self._act(kinds, ["g"])])
            for _ in range(chance.choice([1, 2]))
        )

    def _root(self) -> Act:
        target = Target("f", "w", None, self.where["f"])
        return Act("sync", (target,), self._receipt((target,)))

    def _act(self, deeds: tuple[Deed, ...], below: list[str]) -> Act:
        chance = self.chance
        deed, name = chance.choice(deeds), chance.choice(below)
        several = len(below) > 1 and chance.random() < 0.2
        targets = tuple(self._target(other) for other in (below if several else [name]))
        return Act(deed, targets, self._receipt(targets) if deed != "oneway" else None)

    def _target(self, name: str) -> Target:
        method = self.chance.choice("wwir")
        if self.chance.random() < 0.6:
            return Target(name, method, None, self.where[name])
        return Target(name, method, ((self.chance.choice("xy"), "r" if method == "r" else "w"),), self.where[name])

    def _receipt(self, targets: tuple[Target, ...]) -> Receipt:
        if sum(len(t.nodes) for t in targets) == 1:
            return SREC
        if len(targets) > 1:
            return CREC
        return self.chance.choice([CREC, DREC, DREC, majority(len(targets[0].nodes))])
