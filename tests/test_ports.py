"""Ports that tests, benchmarks and examples give to their servers."""

import errno
import socket
import struct
import sys

import pytest

import examples.nodes
import framework.testing.ports

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot hold a port for a server")

LOCAL_PORT_RANGE = 51  # an option of IP since Linux 6.3


def choosing_only(port):
    """A socket for which the system can choose this port and no other."""
    made = socket.socket()
    try:
        made.setsockopt(socket.IPPROTO_IP, LOCAL_PORT_RANGE, struct.pack("I", port << 16 | port))
    except OSError:
        made.close()
        pytest.skip("this kernel has no range of ports for one socket")
    return made


def taken(port):
    """Whether the system refuses the port to a socket that takes any, and to an outgoing connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        refused = []
        for act in (lambda s: s.bind(("127.0.0.1", 0)), lambda s: s.connect(server.getsockname())):
            with choosing_only(port) as one:
                try:
                    act(one)
                except OSError as error:
                    refused.append(error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL))
    return refused == [True, True]


@pytest.fixture(params=[framework.testing.ports.held, examples.nodes.held], ids=["framework", "examples"])
def held(request):
    return request.param


def test_nobody_gets_a_port_that_is_held_before_while_and_after_its_server_is_there(held):
    with held(1) as (port,):
        assert taken(port)
        with socket.create_server(("127.0.0.1", port)):
            socket.create_connection(("127.0.0.1", port)).close()
            assert taken(port)
        assert taken(port)
    assert not taken(port)


def test_two_that_hold_ports_have_different_ones(held):
    with held(20) as some, held(20) as others:
        assert len({*some, *others}) == 40
