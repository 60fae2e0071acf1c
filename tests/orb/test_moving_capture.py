"""A capture is the state at one moment, whatever happens afterwards, and large ones do not stop the others."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from framework.declare.portable import NotPortable
from framework.errors import Aborted
from framework.orb.moving.captures import Held, capture, is_much
from framework.orb.moving.forked import CaptureFailed, Forked, can_fork
from framework.orb.moving.spool import LARGE, Spool
from framework.orb.performance import Resident
from framework.orb.workers import Workers
from tests.orb.movable import Anything, Ledger, Order, Own

MANY = 40_000


def large():
    made = Anything()
    made.value = {n: [n, f"text {n}"] for n in range(MANY)}
    return made


def restored(chunks):
    fresh = Anything()
    fresh.set_state(chunks)
    return fresh.value


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def pipes():
    """Those that this process has open. Sockets that earlier tests have left may close meanwhile."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            found.add(os.readlink(f"/proc/self/fd/{fd}"))
    return {name for name in found if name.startswith("pipe:")}


def goes(pid):
    """Soon: nobody waits for it who has something else to do."""
    until = time.monotonic() + 60
    while not gone(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return gone(pid)


def test_what_is_much_is_found_out_by_looking_at_little():
    assert not is_much({})
    assert not is_much({"a": [1] * 100, "b": "x" * 1000})
    assert is_much({"a": range(0), "b": dict.fromkeys(range(30_000))})
    assert is_much({"a": ["x" * 100_000] * 20})
    assert is_much({"a": [[[n]] for n in range(15_000)]})
    assert is_much({"a": Order("o", [b"x" * (2 << 20)])})
    circle = []
    circle.append(circle)
    assert not is_much({"a": circle})


@pytest.mark.skipif(not can_fork(), reason="no fork here")
def test_a_large_state_is_that_of_the_cut_while_a_thread_goes_on_changing_it():
    resident = Resident(large(), Workers(1, "w"))
    made, stop = resident.object, threading.Event()

    def change():
        n = 0
        while not stop.is_set():
            made.value[n % MANY].append("changed")
            made.value[-1 - n] = "new"
            n += 1

    taken = capture(made)
    assert isinstance(taken, Forked)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        chunks = list(taken.chunks())
    finally:
        stop.set()
        thread.join()
    assert -1 in made.value
    assert restored(chunks) == large().value
    assert gone(taken.pid)


def test_a_small_state_is_there_at_once():
    made = Anything()
    made.value = {"a": [1]}
    taken = capture(made)
    assert isinstance(taken, Held)
    made.value["a"].append(2)
    assert restored(taken.chunks()) == {"a": [1]}


def test_where_fork_cannot_be_used_all_is_encoded_at_the_cut(monkeypatch):
    monkeypatch.setenv("GRPC_ENABLE_FORK_SUPPORT", "1")
    made = large()
    taken = capture(made)
    assert isinstance(taken, Held)
    made.value.clear()
    assert restored(taken.chunks()) == large().value


def test_no_process_to_be_had(monkeypatch, caplog):
    def refuse():
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    before = pipes()
    taken = capture(large())
    assert isinstance(taken, Held)
    assert "no more processes" in caplog.text
    assert pipes() <= before


def test_a_generator_is_begun_at_the_cut():
    made = Own()
    made.rows = [b"a", b"b"]
    taken = capture(made)
    made.rows = []
    assert list(taken.chunks()) == [b"2 rows", b"a", b"b"]


def test_the_database_of_the_guide_gives_the_rows_of_the_cut():
    donor, joiner = Ledger(), Ledger()
    rows = [(f"{n:05}", n) for n in range(20_000)]
    donor.add(rows)
    joiner.add([("old", 1)])
    taken = capture(donor)
    donor.add([("later", 2)])
    donor.database.execute("DELETE FROM ledger WHERE amount > 100")
    donor.database.commit()
    chunks = []
    thread = threading.Thread(target=lambda: chunks.extend(taken.chunks()))
    thread.start()
    thread.join()
    joiner.set_state(chunks)
    assert len(chunks) > 2
    assert joiner.all() == rows
    assert len(donor.all()) < 200


def test_what_cannot_travel_is_told_to_who_reads():
    for target in (Anything(), large()):
        target.other = threading.Lock()
        with pytest.raises((NotPortable, CaptureFailed), match=r"Anything: self\.other is a _thread\.lock"):
            list(capture(target).chunks())


def test_a_get_state_that_raises_or_gives_no_bytes():
    class Broken(Own):
        def get_state(self):
            raise RuntimeError("no database")

    class Wrong(Own):
        def get_state(self):
            return ["text"]

    with pytest.raises(RuntimeError, match="no database"):
        list(capture(Broken()).chunks())
    with pytest.raises(CaptureFailed, match="get_state gave a str"):
        list(capture(Wrong()).chunks())


# children


def test_a_child_that_dies_is_an_error():
    def die():
        yield b"one"
        os.kill(os.getpid(), signal.SIGKILL)

    child = Forked("Thing", die)
    chunks = child.chunks()
    assert next(chunks) == b"one"
    with pytest.raises(CaptureFailed, match="Thing: the process that writes its state died"):
        next(chunks)
    assert gone(child.pid)


def test_a_child_that_hangs_is_ended():
    def hang():
        yield b"one"
        time.sleep(1000)

    child = Forked("Thing", hang, silence=0.3)
    with pytest.raises(CaptureFailed, match=r"silent for 0\.3 s"):
        list(child.chunks())
    assert gone(child.pid)


def test_a_child_whose_state_nobody_wants_any_more_is_ended():
    def endless():
        while True:
            yield bytes(1 << 20)

    before = pipes()
    child = Forked("Thing", endless)
    assert pipes() - before
    child.close()
    child.close()
    assert goes(child.pid)
    with pytest.raises(CaptureFailed, match="not wanted any more"):
        next(child.chunks())
    other = Forked("Thing", endless)
    chunks = other.chunks()
    next(chunks)
    other.close()
    with pytest.raises(CaptureFailed, match="died"):
        list(chunks)
    assert goes(other.pid)
    assert pipes() <= before


def test_a_child_holds_no_file_of_its_parent():
    """Else a peer would not see that this process has died."""

    def files():
        held = sorted(map(int, os.listdir("/proc/self/fd")))  # one of them is that of the listing itself
        yield repr(
            [os.readlink(f"/proc/self/fd/{fd}") for fd in held if os.path.lexists(f"/proc/self/fd/{fd}")]
        ).encode()

    (told,) = Forked("Thing", files).chunks()
    found = eval(told)
    assert found[:3] == [os.devnull] * 3
    assert len(found) == 4 and found[3].startswith("pipe:")


def test_no_signal_handler_of_the_parent_runs_in_a_child():
    caught = []
    old = signal.signal(signal.SIGTERM, lambda *_: caught.append(1))
    try:

        def told():
            os.kill(os.getpid(), signal.SIGTERM)
            yield b"caught" if caught else b"blocked"

        assert list(Forked("Thing", told).chunks()) == [b"blocked"]
    finally:
        signal.signal(signal.SIGTERM, old)
    assert not caught


def test_any_thread_may_take_a_state():
    taken = []
    thread = threading.Thread(target=lambda: taken.append(capture(large())))
    thread.start()
    thread.join()
    assert isinstance(taken[0], Forked)
    assert restored(taken[0].chunks()) == large().value


FORKS = """
import framework.orb.node, asyncio, os, grpc.aio
async def main():
    server = grpc.aio.server()
    server.add_insecure_port("127.0.0.1:0")
    await server.start()
    for _ in range(3):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        await asyncio.sleep(0.01)
    await server.stop(0)
asyncio.run(main())
"""


def test_grpc_does_not_mind_forks_of_a_node():
    """It says so on stderr otherwise. It must be told before it is imported."""
    clean = {name: value for name, value in os.environ.items() if name != "GRPC_ENABLE_FORK_SUPPORT"}
    ran = subprocess.run([sys.executable, "-c", FORKS], env=clean, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_large_file_is_given_back_by_a_thread_and_a_closed_one_is_not_read():
    """It takes the system 20 ms for 100 MB, and the loop has other things to do."""
    spool = Spool()
    spool.write(bytes(LARGE + 1))
    file = spool._file
    spool.close()
    spool.close()
    assert spool.closed
    with pytest.raises(Aborted, match="not kept any more"):
        spool.read(0, 1)
    until = time.monotonic() + 60
    while not file.closed and time.monotonic() < until:
        time.sleep(0.01)
    assert file.closed


def test_few_large_values_need_no_copy_of_the_process(monkeypatch):
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("it was forked"))
    made = Anything()
    made.value = [bytes([n]) * (1 << 18) for n in range(20)]
    taken = capture(made)
    made.value.clear()
    assert restored(taken.chunks()) == [bytes([n]) * (1 << 18) for n in range(20)]
