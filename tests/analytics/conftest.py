"""One Spark session for all tests of this room: it takes ten seconds to start. They are one group, which one worker
of pytest-xdist runs: else each worker would start a session."""

import shutil
import signal

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from framework.analytics.session import SMALL, start

    before = signal.getsignal(signal.SIGINT)
    session = start("local[2]", "1g", tmp_path_factory.mktemp("spark"), SMALL | {"spark.default.parallelism": "2"})
    signal.signal(signal.SIGINT, before)  # Spark's own would stay with the worker and all its other tests
    yield session
    session.stop()


@pytest.fixture
def chromium():
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium here: install chromium to let the report be looked at")
    return path
