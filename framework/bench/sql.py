"""The measurements of ``obo bench sql``: a replicated database beside plain SQLite and plain PostgreSQL.

What a ratio is made of takes turns in rounds, right beside each other; a ratio is made within each round, and the
median of the rounds counts. The other rows are for scale and run once.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple, Protocol

import msgspec

from framework.bench.load import Measured, Order
from framework.bench.rpc import Target
from framework.bench.sql_side import ONE_NODE, OWN
from framework.testing.sql_work import COUNTED

Progress = Callable[[str], None]

CLIENTS = (1, 8, 32)
MOST = 32
IN_FLIGHT = 256  # calls of the plain ORB, as in obo bench rpc
LEVELS = ("any", "session", "linearizable", "majority")
WARM = 0.3  # of the seconds of a row


class Key(NamedTuple):
    """A row."""

    system: str
    row: str
    clients: int = 1

    def __str__(self) -> str:
        return f"{self.system} {self.row}, {self.clients} client{'' if self.clients == 1 else 's'}"


#: Ratio -> (part, subject, baseline): of statements in a second.
RATIOS: dict[str, tuple[str, Key, Key]] = {
    "insert32_over_sqlite": ("insert", Key("obo", "insert", MOST), Key("sqlite", "insert")),
    "update32_over_sqlite": ("update", Key("obo", "update", MOST), Key("sqlite", "update")),
    "insert32_shared_over_sqlite": ("insert", Key("obo", "insert_shared", MOST), Key("sqlite", "insert")),
    "update32_shared_over_sqlite": ("update", Key("obo", "update_shared", MOST), Key("sqlite", "update")),
    "hot32_over_update32": ("hot", Key("obo", "hot", MOST), Key("obo", "update", MOST)),
    "session_read_over_ucast": ("select", Key("obo", "session", MOST), Key("obo", "ucast", MOST)),
    "session_shared_over_ucast": ("select", Key("obo", "session_shared", MOST), Key("obo", "ucast", MOST)),
    "insert32_over_postgres": ("insert", Key("obo", "insert", MOST), Key("postgres", "insert", MOST)),
}
LOST = "lost_updates"

TARGETS: dict[str, Target | None] = {
    "insert32_over_sqlite": Target(0.6, lower=False),
    "update32_over_sqlite": Target(0.6, lower=False),
    "hot32_over_update32": Target(0.7, lower=False),
    "session_read_over_ucast": Target(0.5, lower=False),
    LOST: Target(0.0, lower=True),
    "insert32_shared_over_sqlite": None,
    "update32_shared_over_sqlite": None,
    "session_shared_over_ucast": None,
    "insert32_over_postgres": None,
}

#: What can be asked for, and the rows of the nodes that each takes.
PARTS: dict[str, tuple[str, ...]] = {
    "insert": ("insert",),
    "update": ("update",),
    "hot": ("hot",),
    "select": LEVELS,
    "mix": ("mix",),
}


class Plan(msgspec.Struct):
    parts: Sequence[str] = tuple(PARTS)
    clients: Sequence[int] = CLIENTS
    rounds: int = 5
    seconds: float = 1.0  # for each row in each round
    payload: int = 64  # bytes of text in a row of a table

    def turns(self, systems: Sequence[str]) -> list[Key]:
        """What a round takes: subjects and baselines of the ratios, neighbours beside each other."""
        chosen = [(baseline, subject) for part, subject, baseline in RATIOS.values() if part in self.parts]
        found = dict.fromkeys(key for both in chosen for key in both)
        return [key for key in found if key.system in systems]

    def once(self, systems: Sequence[str]) -> list[Key]:
        """What is left, for scale."""
        rows = [(part, row) for part in PARTS if part in self.parts for row in PARTS[part]]
        found = [Key("obo", row, n) for _, row in rows for n in self.clients]
        found += [Key("obo", OWN, max(self.clients))] if "insert" in self.parts else []
        found += [Key("obo", ONE_NODE, IN_FLIGHT)] if "select" in self.parts else []
        for part in self.parts:
            found += [Key("sqlite", part), *(Key("postgres", part, n) for n in self.clients)]
        turns = self.turns(systems)
        return [key for key in found if key.system in systems and key not in turns]


class Watched(Protocol):
    """A process, as far as it is looked at."""

    @property
    def name(self) -> str: ...
    def cpu(self) -> float | None: ...
    def rss(self) -> float | None: ...


class Asked(Watched, Protocol):
    def ask(self, order: Order) -> Measured: ...


class System(msgspec.Struct):
    client: Asked
    servers: Sequence[Watched]

    @property
    def processes(self) -> list[Watched]:
        return [self.client, *self.servers]


class Once(msgspec.Struct):
    """One row in one round."""

    measured: Measured
    cpu: dict[str, float | None]  # seconds, by process
    rss: dict[str, float | None]

    @property
    def rate(self) -> float:
        return self.measured.calls / self.measured.seconds if self.measured.seconds else 0.0


class Row(msgspec.Struct):
    """One row, the median of its rounds."""

    system: str
    row: str
    clients: int
    ops: int  # of all rounds
    ops_per_s: float
    p50_us: float
    p99_us: float
    cpu_us_per_op: dict[str, float | None]  # by process
    rss_mib: dict[str, float | None]


class Bench:
    """A benchmark in the making. ``systems`` are running processes."""

    def __init__(self, plan: Plan, systems: Mapping[str, System], progress: Progress) -> None:
        self.plan = plan
        self.systems = systems
        self.notes: list[str] = []
        self.acknowledged = dict.fromkeys(COUNTED, 0)  # by the nodes
        self._progress = progress
        self._seen: dict[Key, list[Once]] = {}

    def run(self) -> None:
        plan, names = self.plan, list(self.systems)
        turns, others = plan.turns(names), plan.once(names)
        for key in [*turns, *others]:
            self._progress(f"warm up: {key}")
            self.once(key, plan.seconds * WARM)
        for turn in range(1, plan.rounds + 1):
            for key in turns:
                self._progress(f"round {turn}/{plan.rounds}: {key}")
                self._seen.setdefault(key, []).append(self.once(key, plan.seconds))
        for key in others:
            self._progress(f"once: {key}")
            self._seen.setdefault(key, []).append(self.once(key, plan.seconds))

    def once(self, key: Key, seconds: float) -> Once:
        chosen = self.systems[key.system]
        before = {p.name: p.cpu() for p in chosen.processes}
        measured = chosen.client.ask(Order(key.row, self.plan.payload, seconds, clients=key.clients))
        cpu = {p.name: _less(p.cpu(), before[p.name]) for p in chosen.processes}
        if measured.error:
            self.notes.append(f"{key}: {measured.error}")
        if key.system == "obo":
            for name, calls in measured.changed.items():
                self.acknowledged[name] += calls
        return Once(measured, cpu, {p.name: p.rss() for p in chosen.processes})

    def rows(self) -> list[Row]:
        found = (self._row(key, [o for o in seen if not o.measured.error]) for key, seen in self._seen.items())
        return [row for row in found if row is not None]

    def ratios(self) -> dict[str, list[float]]:
        """Of each round that has both; empty where there is none."""
        out: dict[str, list[float]] = {}
        for name, (_, subject, baseline) in RATIOS.items():
            pairs = zip(self._seen.get(subject, []), self._seen.get(baseline, []), strict=False)
            out[name] = [a.rate / b.rate for a, b in pairs if not a.measured.error and b.rate and not b.measured.error]
        return out

    def _row(self, key: Key, good: list[Once]) -> Row | None:
        ops = sum(o.measured.calls for o in good)
        if not ops:
            return None
        spent = {name: [o.cpu[name] for o in good] for name in good[0].cpu}
        return Row(
            *key,
            ops,
            median(o.rate for o in good),
            median(o.measured.p50 for o in good) * 1e6,
            median(o.measured.p99 for o in good) * 1e6,
            {n: None if None in each else sum(c or 0.0 for c in each) / ops * 1e6 for n, each in spent.items()},
            good[-1].rss,
        )


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before
