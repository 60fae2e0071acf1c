"""``obo bench membership`` measures what it says. No test here judges a time."""

import json
import signal
import subprocess
import time
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis.strategies import integers

from framework.bench.membership import EVENTS, RATIOS, Event, Run, ratios
from framework.bench.steady import Ack, Gap, Steady, capacity, middle, pause, pauses, recovered
from framework.bench.vault import Vault
from framework.testing import check_conflicts, processes
from tests.cli.run_obo import COMMAND, obo, surroundings


@pytest.mark.full
def test_a_short_run_writes_what_it_measured(tmp_path: Path) -> None:
    file = tmp_path / "membership.json"
    run = obo("bench", "membership", "--quick", "--seconds", 0.3, "--clients", 3, "--json", file)
    assert run.returncode == 0, run.stderr
    found = json.loads(file.read_text())
    assert set(found["ratios"]) == set(RATIOS) == set(found["targets"])
    assert found["ratios"]["client_errors"] == 0, found["runs"][0]["errors"]
    assert found["ratios"]["lost"] == 0
    (one,) = found["runs"]
    assert one["nodes"] == 3 and one["calls"] > 0 and one["twice"] == 0 and 0 < one["busy"] <= 1
    assert [e["event"] for e in one["events"]] == list(EVENTS)
    for e in one["events"]:
        assert len(e["pause_ms_of_clients"]) == 3
        assert 0 < e["pause_all_ms"] <= e["pause_ms"] == max(e["pause_ms_of_clients"])
    assert "crash_pause_over_suspicion" in run.stdout and "leave again" in run.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "3,many"], "--nodes 3,many: write numbers"),
        (["--nodes", "2"], "--nodes 2: from 3 to 15"),
        (["--json", "."], "--json .: "),
    ],
)
def test_mistakes_are_told_before_anything_starts(words: list[str], said: str) -> None:
    run = obo("bench", "membership", *words)
    assert run.returncode == 2
    assert said in run.stderr


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_its_processes_when_it_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    words = [*COMMAND, "bench", "membership", "--nodes", "3", "--seconds", "60"]
    surrounded = surroundings(TMPDIR=str(tmp_path))
    run = subprocess.Popen(words, env=surrounded, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while len(children := _children(run.pid)) < 4:  # three nodes, and who ends them if need be
            assert run.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        run.send_signal(number)
        assert run.wait(60) != 0
        while left := [pid for pid in children if Path(f"/proc/{pid}").exists()]:  # killed, but not yet waited for
            assert time.monotonic() < end + 60, left
            time.sleep(0.05)
        assert not list(tmp_path.iterdir())
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_vault_declares_its_conflicts_truly() -> None:
    check_conflicts(Vault, strategies={"load.blocks": integers(0, 3)})


# what is made of what was measured


def seconds(gaps: list[Gap]) -> list[float]:
    return [gap.seconds for gap in gaps]


def test_a_pause_is_the_longest_time_without_an_answer() -> None:
    acks = [Ack(0.9, 0, 0.9), Ack(1.5, 1, 1.5), Ack(1.7, 0, 1.7), Ack(3.0, 1, 3.0)]
    assert pause(acks, 1.0, 3.2) == pytest.approx((1.3, 1.7))
    assert seconds(pauses(acks, 2, 1.0, 3.2)) == pytest.approx([0.8, 1.5]), "client 0 waits for nothing any more"
    assert seconds(pauses(acks, 2, 1.0, 3.2, {0: 0.5})) == pytest.approx([1.5, 1.5])
    assert seconds(pauses(acks[:1], 2, 1.0, 3.0, {0: 0.0, 1: 0.0})) == pytest.approx([2.1, 2.0]), (
        "nothing came: up to the end"
    )


def test_who_does_not_wait_has_no_pause() -> None:
    """Calls are due at 1, 2 and 3, and the second takes long: the time from one to the next is none."""
    acks = [Ack(1.01, 0, 0.01), Ack(2.4, 0, 0.4), Ack(3.02, 0, 0.02)]
    assert pause(acks, 1.0, 3.5).seconds == pytest.approx(0.4)
    assert pause(acks, 1.0, 2.3).seconds == pytest.approx(0.3), (
        "what is answered after the end was waited for before it"
    )
    assert pause(acks, 2.9, 3.5).seconds == pytest.approx(0.02)
    assert pause(acks, 1.0, 3.5, still=3.03).seconds == pytest.approx(0.47)
    late = [Ack(1.0, 0, 0.0), Ack(1.6, 0, 0.1), Ack(1.9, 0, 0.9)]
    assert pause(late, 0.5, 2.0).seconds == pytest.approx(0.6), "another one waited, too, and was answered later"


def test_it_has_recovered_when_nine_tenths_are_there_for_two_windows() -> None:
    steady = [i / 100 for i in range(100)]
    later = [2.0 + i / 100 for i in range(200)]
    assert recovered(steady + later, 0.0, 1.0, 100.0) == 0.0
    assert recovered(steady + later, 1.0, 4.0, 100.0) == pytest.approx(0.95)
    assert recovered(steady, 0.5, 4.0, 100.0) is None


def test_a_call_is_late_from_when_it_was_due_and_errors_are_kept() -> None:
    def submit() -> Future[None]:
        future: Future[None] = Future()
        called.append(True)
        if len(called) == 4:
            future.set_exception(ValueError("no"))
        else:
            future.set_result(None)
        return future

    called: list[bool] = []
    with Steady([submit, submit], 200.0) as load:
        end = time.monotonic() + 60
        while load.sent < 20 and time.monotonic() < end:
            time.sleep(0.01)
    assert len(load.acks) + 1 == load.sent
    assert [text for _, text in load.errors] == ["client 2: ValueError: no"]
    assert {a.client for a in load.acks} == {0, 1} and middle(load.acks) >= 0.0
    inside = load.between(load.acks[9].at, load.acks[15].at)
    assert load.acks[9] in inside and load.acks[15] not in inside and len(inside) >= 7


def test_it_tells_how_late_its_own_calls_left() -> None:
    """The clients' process had something else to do: that is no pause of the nodes."""
    kept = [False]

    def submit() -> Future[None]:
        if not kept[0]:
            kept[0] = True
            time.sleep(0.1)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    start = time.monotonic()
    with Steady([submit], 100.0) as load:
        while load.sent < 20 and time.monotonic() < start + 60:
            time.sleep(0.01)
    end = time.monotonic()
    assert 0.08 < load.latest(start, end) < end - start
    assert load.latest(start - 10.0, start - 5.0) == 0.0


def test_a_call_that_fails_leaves_no_capacity() -> None:
    def submit() -> Future[None]:
        future: Future[None] = Future()
        future.set_exception(ValueError("no"))
        return future

    assert capacity([submit], 4, 0.05) == 0.0


def _event(name: str, pause_ms: float, after: float | None = 0.5) -> Event:
    return Event(3, name, "n1", 1.0, 2.0, 1.0, pause_ms, 1.0, [pause_ms], 0.1, 0, after)


def test_ratios_are_those_of_the_worst_event() -> None:
    events = [_event("leave", 20.0), _event("leave again", 10.0), _event("rejoin", 30.0), _event("crash", 900.0, 1.5)]
    run = Run(3, 100, 300.0, 100.0, 2.0, 1, 0, events, ["a", "b"])
    assert ratios([run], 0.75) == {
        "leave_pause_over_median": 10.0,
        "join_pause_over_median": 15.0,
        "crash_pause_over_suspicion": 1.2,
        "client_errors": 2,
        "lost": 1,
        "recovered_after_s": 1.5,
    }
    others = [
        Run(3, 100, 300.0, 100.0, 2.0, 0, 0, [_event("leave", p), _event("rejoin", 4.0)], []) for p in (8.0, 12.0)
    ]
    rounds = ratios([run, *others], 0.75)
    assert rounds["leave_pause_over_median"] == 6.0, "the median of 10, 4 and 6; and of 5 alone"
    assert rounds["join_pause_over_median"] == 2.0
    five = Run(5, 100, 300.0, 100.0, 1.0, 0, 0, [_event("leave", 7.0)], [])
    assert ratios([run, *others, five], 0.75)["leave_pause_over_median"] == 7.0, (
        "rounds with as many nodes count together"
    )
    run.events.append(_event("hang", 5.0, None))
    assert ratios([run], 0.75)["recovered_after_s"] is None, "never is not soon"


def test_nodes_keep_their_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """To make it anew takes a core that the others serve with."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in processes._environment()
