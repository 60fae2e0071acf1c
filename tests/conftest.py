"""What tests of several rooms need."""

import os
import signal
import threading
from contextlib import ExitStack

import pytest

from framework.testing.ports import held
from tests import tiers
from tests.tiers import Together, commit_number, mark_those_that_rest

# as framework.net does it, for tests that import gRPC first: else it meddles with forks (docs/state.md)
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A shell without job control starts what is in its background with SIGINT ignored, and processes pass that on: none of
# those that tests start would hear Ctrl-C.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    tiers.first_tier = "not full" in config.getoption("markexpr")


@pytest.hookimpl(tryfirst=True)  # before ``-m`` chooses by marks
def pytest_collection_modifyitems(items):
    mark_those_that_rest(items, commit_number())


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") == "loadscope":
        return Together(config, log)


@pytest.fixture
def ports():
    """Ports on loopback that nobody else gets before the test ends."""
    with ExitStack() as end:
        yield lambda count: end.enter_context(held(count))
