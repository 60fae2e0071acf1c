"""What has time is done with a lower priority, and nothing of that stays."""

import gc
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from framework.cli.gently import NICE, gently


@pytest.fixture(autouse=True)
def thawed():
    yield
    gc.unfreeze()


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own here")
def test_the_work_has_a_lower_priority_and_who_waits_for_it_keeps_his():
    before, seen = nice(), []
    gently(lambda: seen.append(nice()))
    assert seen == [min(before + NICE, 19)]
    assert nice() == before
    child = threading.Thread(target=lambda: seen.append(nice()))
    child.start()
    child.join()
    assert seen[1] == before, "nor has a thread that begins later a lower one"


def test_an_error_comes_out_of_it_and_the_collector_is_as_it_was():
    def fails():
        assert not gc.isenabled()
        raise ValueError("no")

    assert gc.isenabled()
    with pytest.raises(ValueError, match="no"):
        gently(fails)
    assert gc.isenabled()
    gc.disable()
    try:
        gently(lambda: None)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_node_has_imported_what_its_options_and_its_loop_need(tmp_path):
    """Else the thread that is to serve would, at its full priority."""
    (tmp_path / "cluster.toml").write_text('[nodes]\nn1 = "127.0.0.1:1"\n')
    program = """
import sys
sys.argv = ["obo", "serve", "--node", "nobody", "--config", "cluster.toml"]
from framework.cli import commands, main
before = {*sys.modules}
try:
    main.main()
except SystemExit:
    print(*sorted(name for name in {*sys.modules} - before if name.split(".")[0] in ("pydantic", "uvloop", "typer")))
"""
    told = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(told.stdout.split()) < 5 and "no node 'nobody'" in told.stderr, "a few small ones of typer do not matter"


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own here")
def test_a_node_that_ends_gives_way_with_all_its_threads():
    program = """
import os, threading
from framework.cli.serve import _give_way
threading.Thread(target=threading.Event().wait, daemon=True).start()
_give_way()
print({os.getpriority(os.PRIO_PROCESS, int(t)) for t in os.listdir("/proc/self/task")} == {10}, flush=True)
os._exit(0)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True"]


def policies(pid: int) -> set[int]:
    found = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        with suppress(ProcessLookupError):  # it has ended
            found.add(os.sched_getscheduler(int(thread)))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no schedule of their own here")
@pytest.mark.parametrize(("schedule", "policy"), [("", "SCHED_BATCH"), ('schedule = "normal"', "SCHED_OTHER")])
def test_a_node_is_scheduled_as_its_configuration_says(tmp_path, ports, schedule, policy):
    """With all its threads, from its start on."""
    (port,) = ports(1)
    (tmp_path / "cluster.toml").write_text(f'[nodes]\nn1 = "127.0.0.1:{port}"\n[serve]\n{schedule}\n')
    words = [sys.executable, "-m", "framework.cli.main", "serve", "--node", "n1", "--config", "cluster.toml"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as node:
        try:
            assert node.stdout is not None and "n1 is ready" in node.stdout.readline()
            expected, until = {getattr(os, policy)}, time.monotonic() + 60
            while policies(node.pid) != expected and time.monotonic() < until:
                time.sleep(0.1)  # the thread that imported gently takes its last step when there is time
            assert policies(node.pid) == expected and len(os.listdir(f"/proc/{node.pid}/task")) > 1
        finally:
            node.terminate()
