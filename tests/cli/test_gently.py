"""What has time is done with a lower priority, and nothing of that stays."""

import gc
import os
import sys
import threading

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
