"""The PostgreSQL servers that tests use (framework/testing/postgres.py)."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

from framework.testing import postgres
from framework.testing.postgres import _children, servers

ROOT = Path(__file__).parents[3]


def test_one_starts_again_when_what_it_left_behind_is_gone():
    """A killed server's processes end when they notice; on a busy machine, after it was to be started again."""
    with servers(1, fsync=False) as (server,):
        with psycopg.connect(server.url()) as left:
            pid = left.info.backend_pid
            assert pid in _children(server._process.pid)
            os.kill(pid, signal.SIGSTOP)
            os.kill(server._process.pid, signal.SIGKILL)
            server._process.wait(10)
            server._process = None
            ends = threading.Timer(2.0, os.kill, (pid, signal.SIGKILL))
            ends.start()
            server.start()
            ends.join()
        psycopg.connect(server.url()).close()
        assert "pre-existing shared memory block" in server.log.read_text(), "it had to be started more than once"


def test_many_processes_make_one_template(tmp_path, monkeypatch):
    """Workers of pytest-xdist need it at the same time: one makes it, the others wait, and nobody copies half of it."""
    made = []
    initdb = postgres._initdb

    def counted(binaries, data):
        made.append(data)
        initdb(binaries, data)

    monkeypatch.setattr(postgres, "_initdb", counted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tmp_path.chmod(0o755)
    for path in tmp_path.parents[:3]:
        path.chmod(0o755)  # ``nobody`` makes it below this
    binaries = postgres._readable(postgres.find_binaries(), tmp_path)
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: postgres._template(binaries), range(4)))
    assert len(made) == len(found) == 1
    (template,) = found
    assert (template / "PG_VERSION").is_file() and template.parent.stat().st_mode & 0o077 == 0
    template.rename(template.with_name(template.name + ".part"))  # as if that process had been killed before its end
    assert postgres._template(binaries) == template and len(made) == 2


def test_a_process_that_is_killed_leaves_no_server_and_no_data():
    code = (
        "import time\n"
        "from framework.testing.postgres import servers\n"
        "with servers(1, fsync=False) as (server,):\n"
        "    print(server.data.parent, server._process.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8")
    try:
        place, pid = child.stdout.readline().split()
        assert Path(place).is_dir()
        assert "/dev/shm/PostgreSQL" not in Path("/proc", pid, "maps").read_text(), "which stays when it is killed"
    finally:
        child.kill()
        child.wait()
    until = time.monotonic() + 120.0
    while Path(place).exists() or Path("/proc", pid).exists():
        assert time.monotonic() < until, list(Path(place).glob("*"))
        time.sleep(0.05)
