"""``obo bench analytics`` leaves nobody behind, however it ends."""

import os
import signal
import subprocess
import sys
import time

from framework.bench.analytics import _ends_with_its_parent, end

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def deaf():
    process = subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    return process


def test_one_that_does_not_listen_is_ended_all_the_same():
    process = deaf()
    end(process, patience=0.2)
    assert process.returncode == -signal.SIGKILL


def test_also_where_a_signal_interrupts_the_waiting():
    process = deaf()

    def leave(number, frame):
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        end(process, patience=30.0)
    except SystemExit:
        pass
    finally:
        signal.signal(signal.SIGALRM, before)
    assert process.returncode == -signal.SIGKILL


def test_who_starts_it_is_killed_and_it_ends_too():
    start = (
        "import subprocess, sys, time; from framework.bench.analytics import _ends_with_its_parent as f;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], preexec_fn=f);"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    assert _ends_with_its_parent
    parent = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    until = time.monotonic() + 60
    while time.monotonic() < until and _lives(child):
        time.sleep(0.05)
    assert not _lives(child)


def _lives(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
