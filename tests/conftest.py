"""What tests of several rooms need."""

import os
import random
import signal
import socket
import threading

import pytest

from tests.tiers import commit_number, keep_together, mark_those_that_rest

# as framework.net does it, for tests that import gRPC first: else it meddles with forks (docs/state.md)
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A shell without job control starts what is in its background with SIGINT ignored, and processes pass that on: none of
# those that tests start would hear Ctrl-C.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before ``-m`` chooses by marks
def pytest_collection_modifyitems(items):
    mark_those_that_rest(items, commit_number())
    keep_together(items)


@pytest.fixture
def ports():
    """Free ports on loopback, below those that the system gives to outgoing connections: one of these, of another test,
    could take a port before its node does."""

    def choose(count):
        among = iter(random.SystemRandom().sample(range(20_000, 32_000), 200))  # whoever has seeded random
        return [next(port for port in among if is_free(port)) for _ in range(count)]

    return choose


def is_free(port):
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
