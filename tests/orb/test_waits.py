"""A future of ``submit`` is one of concurrent.futures, whatever it is locked with."""

import asyncio
import threading
import time
from concurrent import futures

import pytest

from framework.errors import Unavailable
from framework.orb.outcome import Outcome
from framework.orb.waits import ThreadFuture

DONE = Outcome((), True)


def made(cancelled=None):
    return ThreadFuture(
        lambda outcome: "value", lambda number: (cancelled if cancelled is not None else []).append(number)
    )


def test_it_has_all_that_a_future_has():
    mine, theirs = vars(made()), vars(futures.Future())
    assert mine.keys() - {"number", "_finish", "_take_back"} == theirs.keys()
    assert {k: v for k, v in mine.items() if k in theirs and k != "_condition"} == {
        k: v for k, v in theirs.items() if k != "_condition"
    }
    wanted = {"wait", "notify_all", "acquire", "release", "__enter__", "__exit__"}
    assert all(hasattr(mine["_condition"], name) for name in wanted)


@pytest.mark.parametrize("waiting", [1, 4])
def test_threads_wait_for_it(waiting):
    future, got = made(), []
    threads = [threading.Thread(target=lambda: got.append(future.result(60))) for _ in range(waiting)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    assert got == [] and not future.done()
    future.settle(DONE)
    for thread in threads:
        thread.join(60)
    assert got == ["value"] * waiting


def test_it_may_take_too_long():
    future = made()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        future.result(0.05)
    with pytest.raises(TimeoutError):
        future.exception(0.05)
    assert time.monotonic() - began >= 0.1
    future.settle(DONE)
    assert future.result(0) == "value"


def test_errors_callbacks_and_cancelling():
    failed, told, taken = made(), [], []
    failed.add_done_callback(told.append)
    failed.settle(Unavailable("no"))
    assert told == [failed] and isinstance(failed.exception(), Unavailable)
    gone = made(taken)
    gone.number = 7
    assert gone.cancel() and gone.cancelled() and taken == [7]
    gone.settle(DONE)
    with pytest.raises(futures.CancelledError):
        gone.result(0)


def test_the_tools_of_the_library_take_it():
    some = [made() for _ in range(3)]
    threading.Timer(0.05, lambda: [f.settle(DONE) for f in some]).start()
    done, not_done = futures.wait(some, timeout=60)
    assert len(done) == 3 and not not_done
    assert {f.result() for f in futures.as_completed(some, timeout=60)} == {"value"}
    first, other = made(), made()
    threading.Timer(0.05, lambda: first.settle(DONE)).start()
    done, not_done = futures.wait([first, other], timeout=60, return_when=futures.FIRST_COMPLETED)
    assert done == {first} and not_done == {other}


def test_a_loop_takes_it():
    async def work():
        future = made()
        threading.Timer(0.05, lambda: future.settle(DONE)).start()
        return await asyncio.wrap_future(future)

    assert asyncio.run(work()) == "value"
