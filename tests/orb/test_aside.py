"""Who starts a thread for the rest of a work does not wait for its beginning."""

import sys
import threading

from framework.orb.moving.aside import aside


def test_it_returns_before_the_work_has_begun():
    began, usual = threading.Event(), sys.getswitchinterval()
    sys.setswitchinterval(5.0)  # nobody takes Python's lock from this thread
    try:
        aside(began.set)
        assert not began.is_set()
    finally:
        sys.setswitchinterval(usual)
    assert began.wait(60.0)


def test_it_does_not_keep_the_process():
    over = threading.Event()
    before = threading.active_count()
    aside(over.wait)
    assert threading.active_count() == before
    over.set()
