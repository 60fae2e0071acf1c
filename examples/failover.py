"""A replicated database with fail-over: a node is killed and comes back while clients write, and nothing is lost.

python -m examples.failover

With --at host:port,... it writes to nodes that run already, for half a minute; kill one meanwhile, if you like.
"""

import time

from examples.stage import Stage, stage
from examples.writers import Writers
from framework import Orb
from objects.sql.client import Sql

CLIENTS = 6
WATCH = 30.0  # seconds, with --at
TABLE = "failover_demo"


def write(orb: Orb, number: int) -> None:
    Sql(orb, "db").execute(f"INSERT INTO {TABLE} VALUES (?, ?)", [number, f"row {number}"])


def with_own_nodes(s: Stage, writers: Writers) -> None:
    s.say(f"{CLIENTS} clients insert rows, each through another node first.")
    time.sleep(2.0)
    writers.longest_since()
    s.say("n2 is killed, as by a power cut. The others notice, and go on without it; its clients go to another node.")
    s.kill("n2")
    before = len(writers.done)
    time.sleep(4.0)
    s.check(len(writers.done) > before, f"{len(writers.done) - before} rows were written meanwhile")
    s.say(f"The longest wait of a client was {writers.longest_since():.1f} s. Now n2 is started again.")
    s.start("n2")
    s.check(s.wait_whole(), "n2 is a member again, and has got what it had missed")
    time.sleep(1.0)


def with_theirs(s: Stage, writers: Writers) -> None:
    s.say(f"{CLIENTS} clients insert rows for {WATCH:g} s. Kill a node meanwhile, for example: docker compose kill n2")
    before: list[str] = []
    until = time.monotonic() + WATCH
    while time.monotonic() < until:
        there = sorted(s.status())
        if there != before:
            s.say(f"Nodes that answer: {', '.join(there)}; {len(writers.done)} rows so far.")
        before = there
        time.sleep(1.0)
    s.say(f"The longest wait of a client was {writers.longest_since():.1f} s.")


def judge(s: Stage, writers: Writers) -> None:
    with s.connect() as orb:
        db = Sql(orb, "db")
        rows = [row[0] for row in db.query(f"SELECT id FROM {TABLE}", read="linearizable").rows]
        digests = db.digests()
    s.say(f"{len(writers.done)} inserts were acknowledged; the table has {len(rows)} rows.")
    s.check(not writers.errors, f"no client saw an error{': ' + writers.errors[0] if writers.errors else ''}")
    s.check(sorted(rows) == sorted(writers.done), "every acknowledged row is there once, and no other")
    s.check(digests.equal, f"the copies at {', '.join(digests.replicas)} are the same")
    if s.own:
        s.check(not digests.missing, "no copy is missing")


if __name__ == "__main__":
    with stage(__doc__, at=True, db="objects.sql:Database") as s:
        with s.connect(timeout=10.0) as orb:
            Sql(orb, "db").execute(f"DROP TABLE IF EXISTS {TABLE}")
            Sql(orb, "db").execute(f"CREATE TABLE {TABLE} (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
        orbs = [s.connect(s.names[i % len(s.names)]) for i in range(CLIENTS)]
        with Writers(orbs, write) as writers:
            (with_own_nodes if s.own else with_theirs)(s, writers)
        judge(s, writers)
        for orb in orbs:
            orb.close()
