"""What ``obo bench sql`` does to a database: the same tables and statements for replicas and for plain databases.

``things`` has 1,000 rows that are updated and read, and row 0, the hot one, which only ``hot`` touches. Every update
adds one, every insert has a key of its own: so what was acknowledged can be counted in the tables at the end.
"""

from itertools import count
from random import Random

ROWS = 1000
HOT = 0
READS = 9  # of ten statements in a mix

MAKE = (
    "CREATE TABLE items (id INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    "CREATE TABLE things (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, body TEXT NOT NULL)",
)
FILL = "INSERT INTO things VALUES (?, 0, ?)"
INSERT = "INSERT INTO items VALUES (?, ?)"
UPDATE = "UPDATE things SET n = n + 1 WHERE id = ?"
SELECT = "SELECT n, body FROM things WHERE id = ?"
COUNT_ALL = "SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM things)"  # conflicts with all that changes them

#: What the tables hold at the end, by the name of what changed them.
COUNTED = {
    "insert": "SELECT count(*) FROM items",
    "update": f"SELECT sum(n) FROM things WHERE id <> {HOT}",
    "hot": f"SELECT n FROM things WHERE id = {HOT}",
}


class Work:
    """The next parameters of each kind. One for all clients of a process."""

    def __init__(self, seed: int = 1) -> None:
        self._random = Random(seed)
        self._keys = count(1)
        self._turn = count()
        self.done = dict.fromkeys(COUNTED, 0)  # acknowledged so far

    def insert(self, payload: int) -> tuple[int, str]:
        return next(self._keys), text(payload)

    def thing(self) -> tuple[int]:
        """Any row but the hot one."""
        return (self._random.randint(1, ROWS),)

    def writes(self) -> bool:
        """Of a mix: every tenth."""
        return next(self._turn) % (READS + 1) == READS


def text(payload: int) -> str:
    return "x" * payload


def fill(payload: int) -> list[tuple[int, str]]:
    return [(key, text(payload)) for key in range(ROWS + 1)]
