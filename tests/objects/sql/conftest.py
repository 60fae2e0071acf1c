"""Replicas on real databases: SQLite files, and PostgreSQL servers that are started once for all tests."""

import psycopg
import pytest

from framework.testing.postgres import servers
from objects.sql import postgres_catalog as catalog
from tests.objects.sql.replica import Replica

NODES = ("n1", "n2", "n3")


@pytest.fixture(scope="session")
def postgres_servers():
    with servers(len(NODES), fsync=False) as started:
        for server in started:
            server.create("test")
        yield dict(zip(NODES, started, strict=True))


@pytest.fixture
def postgres_urls(postgres_servers):
    """By node: an empty database on its server. To make one takes longer than to empty one."""
    urls = {node: server.url("test") for node, server in postgres_servers.items()}
    yield urls
    for url in urls.values():
        with psycopg.connect(url, autocommit=True) as raw:
            if raw.execute("SELECT 1 FROM pg_class WHERE relname = '_obo_head'").fetchone() or catalog.schema(raw):
                catalog.wipe(raw)


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
