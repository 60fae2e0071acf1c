"""A database on a real PostgreSQL server, with the functions that statements are written to call."""

import psycopg
import pytest

from objects.sql.postgres_functions import MAKE


@pytest.fixture(scope="session")
def postgres(postgres_servers):
    url = postgres_servers["n1"].create("footprints")
    with psycopg.connect(url, autocommit=True, options="-c client_min_messages=error") as connection:
        for text in MAKE:
            connection.execute(text)
        yield connection
