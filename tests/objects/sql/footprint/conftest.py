"""One real PostgreSQL server for the tests of footprints."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from framework.testing.postgres import servers


@pytest.fixture(scope="session")
def postgres() -> "Iterator[psycopg.Connection[Any]]":
    with servers(1, fsync=False) as (server,):
        options = "-c client_min_messages=error"
        with psycopg.connect(server.url(), autocommit=True, options=options) as connection:
            yield connection
