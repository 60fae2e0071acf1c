"""Replicas on real databases."""

import pytest

from tests.objects.sql.replica import Replica


@pytest.fixture
def make(tmp_path):
    made = []

    def make_replica(node="n1", **options):
        made.append(Replica(tmp_path, node, **options))
        return made[-1]

    yield make_replica
    for one in made:
        one.close()


@pytest.fixture
def db(make):
    return make()
