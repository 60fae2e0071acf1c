"""Images in a file of SQLite and on a real PostgreSQL server (images.py), and a plain connection to that server."""

import psycopg
import pytest

from objects.sql.postgres_functions import MAKE
from tests.objects.sql.footprint import images, images_postgres


@pytest.fixture(scope="session")
def sqlite_images():
    with images.sqlite() as on:
        yield on


@pytest.fixture(scope="module")  # other modules of the session kill the server, and start it again
def postgres_images(postgres_servers):
    server = postgres_servers["n1"]
    with images_postgres.postgres(server.create("images")) as on:
        yield on
    server.drop("images")


@pytest.fixture(scope="module")  # the same
def postgres(postgres_servers):
    """With the functions that statements are written to call."""
    server = postgres_servers["n1"]
    url = server.create("footprints")
    with psycopg.connect(url, autocommit=True, options="-c client_min_messages=error") as connection:
        for text in MAKE:
            connection.execute(text)
        yield connection
    server.drop("footprints")
