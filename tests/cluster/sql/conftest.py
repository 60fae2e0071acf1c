"""Groups of three nodes that many tests of a process share."""

import time

import pytest

from framework.testing.postgres import servers
from tests.cluster.sql.group import NODES, Group


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def group(request, tmp_path_factory):
    """For random mixes: each leaves it without tables."""
    place = tmp_path_factory.mktemp("mixes")
    if request.param == "sqlite":
        with Group(place, {}) as made:
            yield made
    else:
        with servers(len(NODES), fsync=False) as started:
            urls = {node: server.create("mixes") for node, server in zip(NODES, started, strict=True)}
            with Group(place, {"urls": urls}, model=started[0].create("model")) as made:
                yield made


@pytest.fixture(scope="session")
def started():
    """PostgreSQL servers, by node."""
    with servers(len(NODES), fsync=False) as made:
        yield dict(zip(NODES, made, strict=True))


@pytest.fixture(params=["sqlite", "postgres"])
def dialect(request):
    return request.param


@pytest.fixture
def options(request, dialect):
    """Of a cluster with an object db: each test has databases of its own."""
    if dialect == "sqlite":
        return {"db": {}}
    found, name = request.getfixturevalue("started"), f"db{time.monotonic_ns()}"
    return {"db": {"urls": {node: server.create(name) for node, server in found.items()}}}
