"""A database on a real PostgreSQL server, with the functions that statements are written to call."""

import pytest

from tests.objects.sql.footprint.world_postgres import connected


@pytest.fixture(scope="session")
def postgres(postgres_servers):
    with connected(postgres_servers["n1"].create("footprints")) as connection:
        yield connection
