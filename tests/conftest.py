"""What tests of several rooms need."""

import socket

import pytest


@pytest.fixture
def ports():
    """Free ports on loopback: all are held open while they are chosen, so they differ."""

    def choose(count):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for s in sockets:
                s.bind(("127.0.0.1", 0))
            return [s.getsockname()[1] for s in sockets]
        finally:
            for s in sockets:
                s.close()

    return choose
