"""The clients of ``obo soak``: each with a home of its own and the other nodes for fail-over. They transfer, count and
audit at a given pace, one call after the other, and note what they were told."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from framework.bench.vault import START, Vault
from framework.errors import OboError
from framework.orb.client import Orb

ACCOUNTS = tuple(f"a{i}" for i in range(8))
TOTAL = START * len(ACCOUNTS)
MOST = 10  # the largest transfer


class Runner:
    """A thread that calls again and again, until it is stopped."""

    def __init__(self, name: str, orb: Orb, seed: str, pace: float) -> None:
        self.name = name
        self.calls = 0
        self.longest = 0.0  # seconds that a call took
        self.errors: list[str] = []
        self._orb = orb
        self._random = random.Random(seed)
        self._pace = pace  # seconds between two calls
        self._over = threading.Event()
        self._began = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._began = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        self._over.set()

    def join(self, seconds: float) -> bool:
        """Has it ended by then?"""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._over.wait(self._random.uniform(0, 2 * self._pace)):
            self._one()

    def _one(self) -> None:
        raise NotImplementedError

    def _failed(self, kind: str, start: float, home: str, error: Exception) -> None:
        homes = f"home {home or '(none)'}, then {self._orb.home or '(none)'}"
        at = f"{self.name} after {start - self._began:.1f} s, {homes}"
        self.errors.append(f"{at}: {kind}: {type(error).__name__}: {error}")


class Client(Runner):
    """``tallied``: how many ``add`` were acknowledged; ``unsure``: of how many nobody knows whether they happened."""

    def __init__(self, name: str, orb: Orb, seed: str, pace: float) -> None:
        super().__init__(name, orb, seed, pace)
        self.tallied = self.unsure = 0
        self._vault = orb.object(Vault, "vault")

    def _one(self) -> None:
        kind, call = self._choose()
        start = time.monotonic()
        home = self._orb.home
        try:
            found = call()
        except OboError as error:
            self._failed(kind, start, home, error)
            if kind == "add" and error.happened is not False:
                self.unsure += 1
            return
        finally:
            self.longest = max(self.longest, time.monotonic() - start)
        self.calls += 1
        if kind == "add":
            self.tallied += 1
        elif kind == "audit" and (total := sum(found["accounts"].values())) != TOTAL:
            self.errors.append(f"{self.name} after {start - self._began:.1f} s: audit found {total}, not {TOTAL}")

    def _choose(self) -> tuple[str, Callable[[], Any]]:
        draw = self._random.random()
        if draw < 0.6:
            source, target = self._random.sample(ACCOUNTS, 2)
            amount = self._random.randint(1, MOST)
            return "transfer", lambda: self._vault.transfer(source, target, amount)
        if draw < 0.9:
            return "add", lambda: self._vault.add(self.name)
        return "audit", self._vault.audit
