"""The work of ``obo demo``: accounts, clients that move money between them, and what they were told."""

import random
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from framework.errors import OboError, RemoteError

if TYPE_CHECKING:
    from framework.orb.client import Orb
    from objects.sql.client import Sql

ACCOUNTS = 200
START = 1000  # on each account
TOTAL = ACCOUNTS * START
MOST = 400  # the largest transfer: some are more than there is
PATIENCE = 30.0  # seconds after which a client gives up
RECENT = 3.0  # seconds over which speed and delay are told
NAME = "bank"  # of the database

MAKE = (
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0))",
    "CREATE TABLE history (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, target INTEGER NOT NULL, "
    "amount INTEGER NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)",
)
FILL = "INSERT INTO accounts VALUES (?, ?)"
TAKE = "UPDATE accounts SET balance = balance - ? WHERE id = ?"
GIVE = "UPDATE accounts SET balance = balance + ? WHERE id = ?"
NOTE = "INSERT INTO history (id, source, target, amount) VALUES (?, ?, ?, ?)"

#: Every account by the history alone: rows where it is not what the balance says.
WRONG = """
SELECT count(*) FROM accounts WHERE balance <> ? + (
  SELECT coalesce(sum(amount), 0) FROM history WHERE target = accounts.id
) - (
  SELECT coalesce(sum(amount), 0) FROM history WHERE source = accounts.id
)
"""


class Tally:
    """What all clients were told, so far. Written by many threads, each for itself; read by one."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.errors: list[str] = []
        self.longest = 0.0  # seconds that a client waited for an answer
        self._mutex = threading.Lock()
        self._recent: deque[tuple[float, float]] = deque()  # when a transfer was confirmed, and how long it took
        self.confirmed = 0
        self.refused = 0
        self.per_second: list[int] = []

    def add(self, at: float, took: float, refused: bool) -> None:
        with self._mutex:
            self.longest = max(self.longest, took)
            if refused:
                self.refused += 1
                return
            self.confirmed += 1
            self._recent.append((at, took))
            second = int(at - self.began)
            self.per_second += [0] * (second + 1 - len(self.per_second))
            self.per_second[second] += 1

    def failed(self, error: str) -> None:
        with self._mutex:
            self.errors.append(error)

    def speed(self) -> tuple[float, float, float]:
        """Transfers in a second, and the seconds that half of them and 99 of 100 take at most."""
        now = time.monotonic()
        with self._mutex:
            while self._recent and self._recent[0][0] < now - RECENT:
                self._recent.popleft()
            times = sorted(took for _, took in self._recent)
        span = max(0.5, min(RECENT, now - self.began))
        if not times:
            return 0.0, 0.0, 0.0
        return len(times) / span, times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]


class Client:
    """Moves money until it is told to stop. ``confirmed``: the numbers of its transfers that were answered with yes;
    ``unsure``: of how many it does not know."""

    def __init__(self, number: int, orb: "Orb", tally: Tally) -> None:
        from objects.sql.client import Sql

        self.confirmed: list[int] = []
        self.unsure: list[int] = []
        self._db = Sql(orb, NAME, timeout=PATIENCE)
        self._tally = tally
        self._first = number * 1_000_000
        self._random = random.Random(number)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"client{number}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()

    def join(self) -> bool:
        self._thread.join(PATIENCE + 5.0)
        return not self._thread.is_alive()

    def _run(self) -> None:
        number = self._first
        while not self._over.is_set():
            number += 1
            self._move(number)

    def _move(self, number: int) -> None:
        source, target = self._random.sample(range(ACCOUNTS), 2)
        amount = self._random.randint(1, MOST)
        began = time.monotonic()
        try:
            self._db.transaction(
                [(TAKE, [amount, source]), (GIVE, [amount, target]), (NOTE, [number, source, target, amount])]
            )
        except RemoteError as error:
            if "CHECK" not in str(error) and "check constraint" not in str(error):
                self._tally.failed(f"{error}")
            refused = True
        except OboError as error:
            self._tally.failed(f"{type(error).__name__}: {error}")
            if error.happened is None:
                self.unsure.append(number)
            return
        else:
            refused = False
            self.confirmed.append(number)
        now = time.monotonic()
        self._tally.add(now, now - began, refused)


def prepare(db: "Sql") -> None:
    for text in MAKE:
        db.execute(text)
    db.executemany(FILL, [[account, START] for account in range(ACCOUNTS)])
