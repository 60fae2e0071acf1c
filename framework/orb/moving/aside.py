"""Work beside the loop whose beginning nobody waits for either.

``threading.Thread.start`` returns when the thread has begun, so who calls it on the loop waits until the system lets
the new one on, and until it has had Python's lock: some milliseconds where the cores are busy.
"""

import _thread
from collections.abc import Callable


def aside(work: Callable[[], object]) -> None:
    """In a thread that does not keep the process. What it raises is told on stderr."""
    _thread.start_new_thread(work, ())
