"""``obo bench rpc`` measures what it says, and leaves nothing behind. No test here judges a time."""

import json
import signal
import subprocess
import threading
import time
from concurrent.futures import Future
from math import isfinite
from pathlib import Path

import pytest

from framework.bench import profile, rpc, soak
from framework.bench.echo import Echo
from framework.bench.load import Measured, Order, lone, oneway, window
from framework.bench.measure import result
from framework.bench.rpc import PARTS, RATIOS, TARGETS, Plan, Rpc
from framework.errors import BadRequest
from framework.testing import check_conflicts
from tests.cli.run_obo import COMMAND, obo, surroundings
from tests.tiers import only_full

NAMES = {
    "lone_over_grpc_unary",
    "async_over_grpc_futures",
    "oneway_over_grpc_futures",
    "mcast0_over_grpc_futures",
    "mcast100_over_mcast0",
    "async_over_pyro5",
    "rss_growth",
}


# the whole command


def test_a_short_run_writes_what_it_measured(tmp_path: Path) -> None:
    file = tmp_path / "rpc.json"
    run = obo("bench", "rpc", "--quick", "--only", "lone,async", "--rounds", 1, "--seconds", 0.05, "--json", file)
    assert run.returncode == 0, run.stderr
    found = json.loads(file.read_text())
    assert set(found["ratios"]) == NAMES
    measured = {name for name, value in found["ratios"].items() if value is not None}
    assert measured == {"lone_over_grpc_unary", "async_over_grpc_futures", "async_over_pyro5"}, found["notes"]
    assert all(found["ratios"][n] > 0 and isfinite(found["ratios"][n]) for n in measured)
    assert set(found["targets"]) == NAMES - {"async_over_pyro5"}
    assert found["targets"]["oneway_over_grpc_futures"]["reached"] is None, "not measured is not missed"
    rows = {(r["system"], r["row"]): r for r in found["rows"]}
    assert set(rows) == {(s, r) for s in ("obo", "grpc", "pyro5") for r in ("lone", "async")}
    for row in rows.values():
        assert row["payload"] == 64 and row["calls"] > 0 and 0 < row["p50_us"] <= row["p99_us"]
    assert set(rows["obo", "lone"]["cpu_us_per_call"]) == {"obo-client", "n1", "n2", "n3"}
    assert found["notes"] == [] and found["soak"] is None
    assert "async_over_grpc_futures" in run.stdout and "≥ 8" in run.stdout


@pytest.mark.full
def test_every_row_of_the_nodes_and_a_soak(tmp_path: Path) -> None:
    file = tmp_path / "rpc.json"
    words = ["--only", "oneway,mcast0,mcast100,soak", "--rounds", 1, "--seconds", 0.05, "--soak", 0.5, "--json", file]
    run = obo("bench", "rpc", "--quick", *words)
    assert run.returncode == 0, run.stderr
    found = json.loads(file.read_text())
    assert found["notes"] == []
    assert {n for n, value in found["ratios"].items() if value is None} == {"lone_over_grpc_unary"} | {
        n for n in NAMES if n.startswith("async")
    }
    assert found["soak"]["seconds"] == 0.5 and found["soak"]["calls"] > 0
    assert {"n1", "n2", "n3"} <= set(found["soak"]["growth"])


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, only_full(signal.SIGTERM)])
def test_it_ends_its_processes_when_it_is_ended(number: signal.Signals) -> None:
    words = [*COMMAND, "bench", "rpc", "--only", "lone", "--seconds", "60"]
    run = subprocess.Popen(words, env=surroundings(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while len(children := _children(run.pid)) < 4:  # in the midst of starting
            assert run.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        run.send_signal(number)
        assert run.wait(60) != 0
        assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "lone,asink"], "no part 'asink'; did you mean 'async'?"),
        (["--only", ","], "names nothing"),
        (["--json", "."], "--json .: "),
    ],
)
def test_mistakes_are_told_before_anything_starts(words: list[str], said: str) -> None:
    run = obo("bench", "rpc", *words)
    assert run.returncode == 2
    assert said in run.stderr


def test_without_py_spy_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(BadRequest, match=r"pip install 'obo\[bench\]'"):
        profile.find()


def test_without_pyro5_its_rows_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "find_spec", lambda name: None if name == "Pyro5" else object())
    plan = Plan(parts=["async"])
    assert plan.rows() == [("grpc", "async"), ("obo", "async")]
    assert rpc.needed(plan) == ["obo", "grpc"]
    assert result(Rpc(plan, {}, lambda _: None), None).ratios["async_over_pyro5"] is None


# what is measured


def test_echo_declares_its_conflicts_truly() -> None:
    check_conflicts(Echo)


def test_every_part_measures_what_its_ratios_are_made_of() -> None:
    assert {*RATIOS, "rss_growth"} == set(TARGETS) == NAMES
    for part, *both in RATIOS.values():
        assert set(both) <= set(PARTS[part])


def test_never_more_in_flight_than_the_window() -> None:
    waiting: list[Future[None]] = []
    most = 0
    over = threading.Event()

    def submit() -> Future[None]:
        nonlocal most
        future: Future[None] = Future()
        waiting.append(future)
        most = max(most, len(waiting))
        return future

    def answer() -> None:
        while not over.is_set() or waiting:
            if len(waiting) == 7 or over.is_set():
                while waiting:
                    waiting.pop().set_result(None)
            time.sleep(0.001)

    thread = threading.Thread(target=answer)
    thread.start()
    threading.Timer(1.2, over.set).start()
    measured = window(submit, 7, 1.0)
    thread.join()
    assert most == 7
    assert measured.calls >= 7 and not measured.error


def test_a_call_that_fails_makes_the_row_void() -> None:
    def submit() -> Future[None]:
        future: Future[None] = Future()
        future.set_exception(ValueError("no"))
        return future

    measured = window(submit, 4, 10.0)
    assert "1 of 1 calls failed, the first with ValueError('no')" in measured.error


def test_one_way_calls_count_when_they_are_performed() -> None:
    performed = [5]  # before

    def send() -> None:
        performed[0] += 1

    assert oneway(send, lambda: performed[0], 0.01).lost == 0


def test_a_lost_one_way_call_makes_the_row_void() -> None:
    sent = [0]

    def send() -> None:
        sent[0] += 1

    measured = oneway(send, lambda: max(0, sent[0] - 1), 0.01, patience=0.05)
    assert measured.lost == 1
    assert f"{measured.calls} sent one-way, {measured.calls - 1} performed" in measured.error


def test_a_lone_call_is_timed_each_by_itself() -> None:
    calls: list[int] = []
    measured = lone(lambda: calls.append(1), 0.01)
    assert measured.calls == len(calls)
    assert measured.p50 <= measured.p99 <= measured.seconds


class FakeClient:
    """Answers each order with the next of what it was given for the row."""

    name = "client"

    def __init__(self, **answers: list[Measured]) -> None:
        self.answers = {row: iter([given[0], *given]) for row, given in answers.items()}  # one more to warm up

    def ask(self, order: Order) -> Measured:
        return next(self.answers[order.row])

    def cpu(self) -> float | None:
        return None

    def rss(self) -> float | None:
        return None


def _systems(**clients: FakeClient) -> dict[str, rpc.System]:
    return {name: rpc.System(name, client, []) for name, client in clients.items()}  # type: ignore[arg-type]


def _rates(*rates: float) -> list[Measured]:
    return [Measured(calls=int(r), seconds=1.0, p50=1 / r, p99=1 / r) for r in rates]


def test_a_ratio_is_made_within_a_round_and_the_median_counts() -> None:
    plan = Plan(parts=["oneway"], payloads=(64,), rounds=3)
    clients = {"grpc": FakeClient(**{"async": _rates(10, 100, 1000)}), "obo": FakeClient(oneway=_rates(20, 700, 3000))}
    bench = Rpc(plan, _systems(**clients), lambda _: None)
    bench.run()
    found = result(bench, None)
    assert found.ratios["oneway_over_grpc_futures"] == 3  # of 2, 7 and 3
    assert found.spread["oneway_over_grpc_futures"] == (2, 7)
    assert found.targets["oneway_over_grpc_futures"].reached is False
    assert [(r.system, r.calls, r.calls_per_s) for r in found.rows] == [("grpc", 1110, 100), ("obo", 3720, 700)]


def test_a_ratio_is_made_with_the_baseline_right_beside() -> None:
    plan = Plan(parts=["async", "oneway"], payloads=(64,), rounds=1)
    clients = {
        "grpc": FakeClient(**{"async": _rates(10, 100)}),  # the machine became free between the two
        "obo": FakeClient(**{"async": _rates(20), "oneway": _rates(300)}),
        "pyro5": FakeClient(**{"async": _rates(40)}),
    }
    bench = Rpc(plan, _systems(**clients), lambda _: None)
    bench.run()
    found = result(bench, None).ratios
    assert (found["async_over_grpc_futures"], found["oneway_over_grpc_futures"]) == (2, 3)
    assert found["async_over_pyro5"] == 0.5


def test_a_void_row_counts_for_no_ratio_and_is_told() -> None:
    plan = Plan(parts=["oneway"], payloads=(64,), rounds=2)
    bad = [*_rates(10), Measured(error="2 sent one-way, 1 performed")]
    clients = {"grpc": FakeClient(**{"async": _rates(5, 5)}), "obo": FakeClient(oneway=bad)}
    bench = Rpc(plan, _systems(**clients), lambda _: None)
    bench.run()
    found = result(bench, None)
    assert found.ratios["oneway_over_grpc_futures"] == 2
    assert found.spread["oneway_over_grpc_futures"] == (2, 2), "the good round alone"
    assert found.notes == ["obo oneway, 64 B: 2 sent one-way, 1 performed"]


def test_lower_is_better_for_a_lone_call_only() -> None:
    assert TARGETS["lone_over_grpc_unary"].reached(0.7) and not TARGETS["lone_over_grpc_unary"].reached(0.9)  # type: ignore[union-attr]
    assert TARGETS["async_over_grpc_futures"].reached(9.0) and not TARGETS["async_over_grpc_futures"].reached(7.0)  # type: ignore[union-attr]


def test_growth_is_the_end_over_one_fifth() -> None:
    samples = [(1.0, 10.0), (2.0, 20.0), (6.0, 25.0), (10.0, 30.0)]
    assert soak._growth(samples, 10.0) == 1.5
