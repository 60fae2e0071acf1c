"""A database on a real PostgreSQL server, with the functions that statements are written to call."""

import pytest

from tests.objects.sql.footprint.world_postgres import connected


@pytest.fixture(scope="module")  # other modules of the session kill the server, and start it again
def postgres(postgres_servers):
    server = postgres_servers["n1"]
    with connected(server.create("footprints")) as connection:
        yield connection
    server.drop("footprints")
