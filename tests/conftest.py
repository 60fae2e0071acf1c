"""What tests of several rooms need."""

import gc
import os
import signal
import sys
import threading
from contextlib import ExitStack

import pytest
from hypothesis import settings

from framework.testing.ports import held
from tests import tiers
from tests.tiers import Together, commit_number, mark_those_that_rest, turn_of

# as framework.net does it, for tests that import gRPC first: else it meddles with forks (docs/state.md)
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# Without bytecode hundreds of processes would compile the sources again, and each worker would rewrite each test.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell without job control starts what is in its background with SIGINT ignored, and processes pass that on: none of
# those that tests start would hear Ctrl-C.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    tiers.first_tier = "not full" in config.getoption("markexpr")
    settings.register_profile("first", derandomize=tiers.first_tier)  # the same tests every time
    settings.load_profile("first")


@pytest.hookimpl(tryfirst=True)  # before ``-m`` chooses by marks
def pytest_collection_modifyitems(items):
    mark_those_that_rest(items, commit_number())
    items.sort(key=lambda item: turn_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers():
    return len(os.sched_getaffinity(0)) + 1  # many tests wait for processes and clocks


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") == "loadscope":
        return Together(config, log)


@pytest.fixture
def ports():
    """Ports on loopback that nobody else gets before the test ends."""
    with ExitStack() as end:
        yield lambda count: end.enter_context(held(count))


@pytest.fixture(scope="module", autouse=True)
def _little_to_collect():
    """Keep what thousands of collected tests hold away from the garbage collector, which took a quarter of the time."""
    gc.collect()
    gc.freeze()
