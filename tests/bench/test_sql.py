"""``obo bench sql`` measures what it says, loses nothing, and leaves nothing behind. No test here judges a time."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from framework.bench import sql_processes, sqlite_side
from framework.bench.closed import closed
from framework.bench.load import Measured, Order
from framework.bench.sql import PARTS, RATIOS, TARGETS, Bench, Key, Plan, System
from framework.bench.sql_result import Held, result
from framework.errors import Unavailable
from framework.testing.sql_work import COUNTED, HOT, ROWS, Work
from tests.cli.run_obo import COMMAND, obo, surroundings

NAMES = {
    "insert32_over_sqlite",
    "update32_over_sqlite",
    "insert32_shared_over_sqlite",
    "update32_shared_over_sqlite",
    "session_shared_over_ucast",
    "hot32_over_update32",
    "session_read_over_ucast",
    "lost_updates",
    "insert32_over_postgres",
}
LEVELS = {"any", "session", "linearizable", "majority"}


# the whole command


@pytest.mark.full
def test_a_short_run_writes_what_it_measured(tmp_path: Path) -> None:
    file = tmp_path / "sql.json"
    run = obo("bench", "sql", "--quick", "--rounds", 1, "--seconds", 0.1, "--json", file)
    assert run.returncode == 0, run.stderr
    found = json.loads(file.read_text())
    assert set(found["ratios"]) == NAMES
    assert found["ratios"]["lost_updates"] == 0 and found["targets"]["lost_updates"]["reached"] is True
    assert found["digests_equal"] is True
    assert found["notes"] == []
    assert all(found["ratios"][name] > 0 for name in NAMES - {"lost_updates"})
    rows = {(r["system"], r["row"], r["clients"]): r for r in found["rows"]}
    assert {row for system, row, n in rows if system == "obo" and n == 32} >= {
        "insert",
        "update",
        "hot",
        "mix",
        *LEVELS,
    }
    for plain in ("sqlite", "postgres"):
        assert {row for system, row, _ in rows if system == plain} == {"insert", "update", "hot", "select", "mix"}
    for row in rows.values():
        assert row["ops"] > 0 and 0 < row["p50_us"] <= row["p99_us"]
    assert set(rows["obo", "insert", 32]["cpu_us_per_op"]) == {"sql-client", "n1", "n2", "n3"}
    assert set(rows["postgres", "insert", 32]["cpu_us_per_op"]) == {"postgres-client", "postgres"}
    assert set(found["replicas"]) == {"db@n1", "db@n2", "db@n3"}
    for held in found["replicas"].values():
        assert held["counted"] == found["acknowledged"] and set(held["digests"]) == {"items", "things"}
    assert "insert32_over_sqlite" in run.stdout and "≥ 0.6" in run.stdout and "replicas are equal" in run.stdout


def test_mistakes_are_told_before_anything_starts() -> None:
    run = obo("bench", "sql", "--only", "insert,hott")
    assert run.returncode == 2
    assert "no part 'hott'; did you mean 'hot'?" in run.stderr


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_its_processes_when_it_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    words = [*COMMAND, "bench", "sql", "--seconds", "60"]
    surrounded = surroundings(TMPDIR=str(tmp_path))
    run = subprocess.Popen(words, env=surrounded, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while len(children := _children(run.pid)) < 5:  # three nodes, their clients, plain SQLite
            assert run.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        run.send_signal(number)
        assert run.wait(60) != 0
        while left := [pid for pid in children if Path(f"/proc/{pid}").exists()]:
            assert time.monotonic() < end + 60, left
            time.sleep(0.05)
        assert not list(tmp_path.iterdir())
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# what is measured


def test_a_ratio_is_of_rows_that_its_part_measures_in_every_round() -> None:
    assert {*RATIOS, "lost_updates"} == set(TARGETS) == NAMES
    every = ["obo", "sqlite", "postgres"]
    for part, subject, baseline in RATIOS.values():
        assert {subject, baseline} <= set(Plan(parts=[part]).turns(every))
    plan = Plan()
    assert not set(plan.turns(every)) & set(plan.once(every))
    asked = {(k.row, k.clients) for k in [*plan.turns(every), *plan.once(every)] if k.system == "obo"}
    assert asked >= {(row, n) for rows in PARTS.values() for row in rows for n in (1, 8, 32)}


def test_without_postgresql_its_rows_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_processes, "find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"pip install 'obo\[postgres\]'"), ExitStack() as stack:
        sql_processes._postgres(stack, Path(), 64)
    plan = Plan()
    for keys in (plan.turns(["obo", "sqlite"]), plan.once(["obo", "sqlite"])):
        assert keys and all(key.system != "postgres" for key in keys)


def test_each_client_has_one_call_under_way() -> None:
    async def run() -> tuple[Measured, int]:
        under_way = most = 0

        async def call() -> None:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.001)
            under_way -= 1

        return await closed([call] * 5, 0.1), most

    measured, most = asyncio.run(run())
    assert most == 5 and measured.calls >= 5 and not measured.error


def test_a_call_that_fails_makes_the_row_void_but_what_was_acknowledged_counts() -> None:
    async def run() -> Measured:
        made = 0

        async def call() -> None:
            nonlocal made
            made += 1
            if made == 3:
                raise ValueError("no")

        return await closed([call], 10.0)

    measured = asyncio.run(run())
    assert measured.calls == 2
    assert "1 calls failed after 2 good ones, the first with ValueError('no')" in measured.error


def test_a_mix_writes_one_of_ten_and_updates_never_touch_the_hot_row() -> None:
    work = Work()
    assert sum(work.writes() for _ in range(100)) == 10
    rows = {work.thing()[0] for _ in range(5000)}
    assert HOT not in rows and min(rows) >= 1 and max(rows) <= ROWS and len(rows) > 900


def test_plain_sqlite_commits_every_statement_and_counts_come_out_right(tmp_path: Path) -> None:
    file = tmp_path / "plain.sqlite"
    rows = sqlite_side.rows(f"{file},64")
    calls = {name: rows[name](Order(name, 64, 0.02)).calls for name in ("insert", "update", "hot")}
    assert rows["select"](Order("select", 64, 0.02)).calls > 0
    with sqlite3.connect(file) as other:  # it sees what is committed
        assert {name: other.execute(text).fetchone()[0] for name, text in COUNTED.items()} == calls
    assert {"journal_mode = WAL", "synchronous = FULL"} <= set(sqlite_side.PRAGMAS)


class FakeClient:
    """Answers each order for a row with the next of what it was given; the first one is the warm-up."""

    def __init__(self, name: str, answers: dict[str, list[Measured]]) -> None:
        self.name = name
        self._answers = {row: iter([given[0], *given]) for row, given in answers.items()}

    def ask(self, order: Order) -> Measured:
        return next(self._answers[order.row])

    def cpu(self) -> float | None:
        return 1.0

    def rss(self) -> float | None:
        return None


def _rates(*rates: float, changed: str = "") -> list[Measured]:
    return [Measured(int(r), 1.0, 1 / r, 1 / r, changed={changed: int(r)} if changed else {}) for r in rates]


def _ran(plan: Plan, **clients: dict[str, list[Measured]]) -> Bench:
    bench = Bench(plan, {name: System(FakeClient(name, rows), []) for name, rows in clients.items()}, lambda _: None)
    bench.run()
    return bench


def _held(bench: Bench, lost: int = 0, digests: str = "d") -> Held:
    counted = {**bench.acknowledged, "hot": bench.acknowledged["hot"] - lost}
    return Held(counted, {"hot": lost}, {}, {"things": digests})


PLAN = Plan(parts=["hot"], clients=(32,), rounds=3)
HOT_ROWS = {"update": _rates(10, 100, 1000, changed="update"), "hot": _rates(20, 300, 1000, changed="hot")}


def test_a_ratio_is_made_within_a_round_and_the_median_counts() -> None:
    bench = _ran(PLAN, obo=HOT_ROWS)
    found = result(bench, {"db@n1": _held(bench)})
    assert found.ratios["hot32_over_update32"] == 2  # of 2, 3 and 1
    assert found.spread["hot32_over_update32"] == (1, 3)
    assert found.ratios["insert32_over_sqlite"] is None and found.targets["insert32_over_sqlite"].reached is None
    assert found.acknowledged == {"insert": 0, "update": 1120, "hot": 1340}, "the warm-up counts, too"
    assert [(r.row, r.clients, r.ops, r.ops_per_s) for r in found.rows] == [
        ("update", 32, 1110, 100),
        ("hot", 32, 1320, 300),
    ]


def test_what_is_lost_at_any_replica_counts_and_digests_are_compared() -> None:
    bench = _ran(PLAN, obo=HOT_ROWS)
    good = result(bench, {"db@n1": _held(bench), "db@n2": _held(bench)})
    assert good.ratios["lost_updates"] == 0 and good.targets["lost_updates"].reached and good.digests_equal
    bad = result(bench, {"db@n1": _held(bench), "db@n2": _held(bench, lost=2, digests="e")})
    assert bad.ratios["lost_updates"] == 2 and not bad.targets["lost_updates"].reached and not bad.digests_equal
    gone = result(bench, {"db@n1": _held(bench), "db@n2": Held({}, {}, {}, {})})
    assert not gone.digests_equal


def test_a_void_row_counts_for_no_ratio_and_is_told() -> None:
    rows = {"update": _rates(10, 10, 10), "hot": [*_rates(20, 20), Measured(5, 1.0, error="1 calls failed")]}
    found = result(bench := _ran(PLAN, obo=rows), {"db@n1": _held(bench)})
    assert found.spread["hot32_over_update32"] == (2, 2)
    assert found.notes == [f"{Key('obo', 'hot', 32)}: 1 calls failed"]


# obo bench join


@pytest.mark.full
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_replica_that_lost_everything_joins_under_load(database: str, tmp_path: Path) -> None:
    file = tmp_path / "join.json"
    words = ["--postgres"] if database == "postgres" else []
    run = obo("bench", "join", "--mb", 3, "--seconds", 0.5, "--json", file, *words, timeout=240)
    assert run.returncode == 0, run.stderr
    found = json.loads(file.read_text())
    assert found["database"] == database and found["megabytes"] >= 3 and found["calls"] > 0
    assert found["equal"] is True and found["errors"] == [] and found["lost"] == found["twice"] == 0


def test_a_join_after_which_something_is_missing_is_no_good() -> None:
    from framework.bench.sql_join import Plan, Result

    good = Result("sqlite", 1, 1, 1, 1, 1, 1, 1, 1, 1, {}, {}, [], 1, True, 0, 0, Plan())
    assert good.good
    for name, value in (("errors", ["x"]), ("equal", False), ("lost", 1), ("twice", 1)):
        assert not msgspec.structs.replace(good, **{name: value}).good
