"""Ctrl-C as framework/interrupt.py has it, in small programs; in whole commands: ``tests/cli/test_ctrl_c.py``."""

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from framework.interrupt import start, undisturbed


@pytest.fixture
def hasty_threads():
    """Threads that take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def program(text):
    head = "import os, signal, subprocess, sys\nfrom framework import interrupt\n"
    press = "def press(): os.kill(os.getpid(), signal.SIGINT)\n"
    return subprocess.run(
        [sys.executable, "-c", head + press + text], capture_output=True, text=True, timeout=120, check=False
    )


def test_while_it_imports_nothing_is_raised_that_a_module_could_catch():
    done = program("with interrupt.command():\n try:\n  press()\n except BaseException: pass\n print('went on')")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_error_that_comes_of_it_is_no_error():
    done = program(
        "with interrupt.command():\n"
        " interrupt.interruptible()\n"
        " try:\n  press()\n  while True: pass\n"
        " finally: raise ConnectionError('it went away, as it was told to')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("error", ["ValueError('a fault')", "SystemExit(7)"])
def test_another_error_is_what_it_was(error):
    done = program(f"with interrupt.command():\n interrupt.interruptible()\n raise {error}")
    assert done.returncode == (7 if "7" in error else 1)
    assert ("ValueError: a fault" in done.stderr) == ("7" not in error)


@pytest.mark.parametrize("slow", [False, True])
def test_one_that_nobody_can_catch_comes_again(slow):
    """Python prints an exception of ``__del__`` and goes on; ``slow``: the thread that sends it again is the faster."""
    late = (
        "import threading, time\n"
        "start = threading.Thread.start\n"
        "threading.Thread.start = lambda thread: (start(thread), time.sleep(0.5))\n"
    )
    done = program(
        late * slow + "class Ends:\n def __del__(self):\n  press()\n  while True: pass\n"
        "with interrupt.command():\n"
        " interrupt.interruptible()\n"
        " Ends()\n"
        " signal.pause()\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_when_it_is_over_what_it_started_is_gone():
    done = program(
        "with interrupt.command():\n"
        " interrupt.interruptible()\n"
        " child = interrupt.start([sys.executable, '-c', 'import signal; signal.pause()'], stdin=subprocess.DEVNULL)\n"
        " print(child.pid, os.getpgid(child.pid) != os.getpgid(0), flush=True)\n"
        " press()\n"
        " signal.pause()\n"
    )
    pid, alone = done.stdout.split()
    assert (done.returncode, alone, done.stderr) == (130, "True", "")
    found = subprocess.run(["ps", "-p", pid], capture_output=True, check=False)
    assert found.returncode, "the child is left"


@pytest.mark.usefixtures("hasty_threads")
def test_threads_start_processes_at_the_same_time():
    def several():
        for _ in range(25):
            with start([sys.executable, "-c", ""], executable="/bin/true"):
                pass

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(several) for _ in range(8)]:
            done.result()


def test_a_process_that_a_thread_is_starting_is_gone_when_it_is_over():
    """The thread has started it, and has not yet said so, when Ctrl-C comes."""
    done = program(
        "import threading, time\n"
        "begun, popen = threading.Event(), subprocess.Popen\n"
        "def slow(*words, **how):\n"
        " child = popen(*words, **how)\n"
        " print(child.pid, flush=True)\n"
        " begun.set()\n"
        " time.sleep(0.5)\n"
        " return child\n"
        "subprocess.Popen = slow\n"
        "words = [sys.executable, '-c', 'import signal; signal.pause()']\n"
        "with interrupt.command():\n"
        " threading.Thread(target=interrupt.start, args=(words,), kwargs={'stdout': subprocess.DEVNULL}).start()\n"
        " begun.wait()\n"
        " press()\n"
        " signal.pause()\n"
    )
    assert (done.returncode, done.stderr) == (130, "")
    found = subprocess.run(["ps", "-p", done.stdout.strip()], capture_output=True, check=False)
    assert found.returncode, "the child is left"


def test_a_shell_that_ignores_it_for_a_command_in_the_background_is_heeded():
    ignored = "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    done = program(ignored + "with interrupt.command():\n interrupt.interruptible()\n press()\n print('went on')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")


def test_a_signal_waits_for_the_end_also_of_the_outer_one():
    done = []

    def press():
        with undisturbed():
            with undisturbed():
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark puts one of its own there
    try:
        with pytest.raises(KeyboardInterrupt):
            press()
        assert done == ["inner", "outer"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_there_is_nothing_to_wait_for():
    failed = []

    def enter():
        try:
            with undisturbed():
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert not failed
