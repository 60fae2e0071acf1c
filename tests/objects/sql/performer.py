"""A process that performs calls on a database until it is killed, and says what was committed: PLACE as JSON, MODE.

write     batches of inserts, some of which fail; the note of each has its number
receive   takes over the state in a file, piece by piece, again and again
"""

import json
import sys
from pathlib import Path

from framework import Place, performing
from objects.sql import Database
from tests.objects.sql.replica import Request

HEAD_EVERY = 7


def write(database):
    recalled = database.recall()
    if recalled is None:
        database.begin()
        database.commit([], b"0")
        recalled = database.recall()
    number = max([int(recalled.head), *map(int, recalled.entries)])
    while True:
        database.begin()
        entries = []
        with performing(Request(number)):
            if not number:
                database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
            for _ in range(number % 4 + 1):
                number += 1
                database.execute("INSERT INTO t VALUES (?, ?)", [number, "x" * (number % 5000)])
                fails(database, number)
                entries.append(b"%d" % number)
        database.commit(entries, b"%d" % number if number % HEAD_EVERY == 0 else None)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


def fails(database, number):
    """A call that takes itself back."""
    try:
        database.transaction(
            [("INSERT INTO t VALUES (?, 'not this')", [-number]), ("INSERT INTO t VALUES (1, '')", [])]
        )
    except Exception:
        return
    raise SystemExit("it did not fail")


def receive(database, path):
    while True:
        sys.stdout.write("again\n")
        sys.stdout.flush()
        database.set_state(pieces(path))


def pieces(path):
    with Path(path).open("rb") as file:
        while piece := file.read(50_000):
            yield piece


def main(place, mode, *more):
    made = json.loads(place)
    database = Database()
    database.open(Place(**{**made, "directory": Path(made["directory"])}))
    {"write": write, "receive": receive}[mode](database, *more)


if __name__ == "__main__":
    main(*sys.argv[1:])
