"""The PostgreSQL servers that tests use (framework/testing/postgres.py)."""

import os
import signal
import threading

import psycopg

from framework.testing.postgres import _children, servers


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
