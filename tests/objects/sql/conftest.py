"""Replicas on real databases: SQLite files, and PostgreSQL servers that are started once for all tests."""

import itertools

import pytest

from framework.testing.postgres import servers
from tests.objects.sql.replica import Replica

NODES = ("n1", "n2", "n3")
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_servers():
    with servers(len(NODES), fsync=False) as started:
        yield dict(zip(NODES, started, strict=True))


@pytest.fixture
def postgres_urls(postgres_servers):
    """By node: a new database on its server."""
    name = f"test_{next(_numbers)}"
    yield {node: server.create(name) for node, server in postgres_servers.items()}
    for server in postgres_servers.values():
        server.drop(name)


@pytest.fixture(params=["sqlite", "postgres"])
def dialect(request):
    return request.param


@pytest.fixture
def make(tmp_path, dialect, request):
    """Makes replicas, by node and options."""
    made = []
    usual = {"urls": request.getfixturevalue("postgres_urls")} if dialect == "postgres" else {}

    def make_replica(node="n1", **options):
        made.append(Replica(tmp_path, node, **{**({} if "url" in options else usual), **options}))
        return made[-1]

    yield make_replica
    for one in made:
        one.close()


@pytest.fixture
def db(make):
    return make()
