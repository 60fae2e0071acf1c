"""A short ``obo soak --sql --random``: random statements under kills, and digests that are equal."""

import json
from random import Random

import pytest

from framework.bench.soak_group import Plan
from framework.bench.soak_random import RandomClient, RandomSoak, Shared
from framework.cli.soak import run
from framework.errors import BadRequest, OutcomeUnknown, RemoteError
from framework.testing.sql_grammar import Grammar
from objects.sql import Result
from tests.cli.run_obo import obo


@pytest.mark.full
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_all_replicas_have_the_same(tmp_path, database):
    words = ["--postgres"] if database == "postgres" else []
    words += ["--minutes", 0.6, "--clients", 4, "--seed", 3, "--trace", tmp_path, "--json"]
    done = obo("soak", "--sql", "--random", *words, timeout=400)
    said = json.loads(done.stdout)
    assert said["problems"] == [] and done.returncode == 0, done.stderr
    assert said["faults"]["kill"] >= 1 and said["compared"] >= 1 and said["rows"]["update"] > 0
    first, *others = said["digests"].values()
    assert others == [first, first]


def test_it_is_for_databases():
    with pytest.raises(BadRequest, match="--random is for --sql"):
        run(random=True)


class Db:
    def __init__(self, found):
        self.found = found

    def execute(self, *_):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class Orb:
    home = "n1"

    def __init__(self, found):
        self.found = found

    def object(self, *_):
        return Db(self.found)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Result([], [], 1), (1, 0, 0)),
        (RemoteError("IntegrityError: UNIQUE"), (0, 1, 0)),
        (BadRequest("refused"), (0, 1, 0)),
        (OutcomeUnknown("nobody knows"), (0, 0, 1)),
    ],
)
def test_what_a_client_makes_of_an_answer(found, told):
    shared = Shared("sqlite")
    shared.grammar = Grammar(Random("1"), "sqlite", texts=0, images=1)
    client = RandomClient("client1", Orb(found), "0", shared)
    client._one()
    assert (client.calls, client.refused, len(client.errors)) == told


def test_replicas_that_differ_are_a_problem():
    class Reply:
        def __init__(self, replica, value):
            self.replica, self.value = replica, value

    class Cluster:
        def connect(self, **_):
            return self

        def object(self, *_):
            return self

        digest = mcast = object

        def request(self):
            return None

        def crec(self, _):
            return [Reply("db@n1", {"a": "1"}), Reply("db@n2", {"a": "2"})]

    cluster = Cluster()
    cluster.digest = cluster
    soak = RandomSoak(Plan(clients=1), cluster, {})
    soak._compare()
    assert soak.compared == 1 and "the states of the replicas differ" in soak.problems[0]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_schema_is_removed_from_its_end(dialect):
    made = Grammar(Random("3"), dialect, texts=0, images=1)
    cascade = " CASCADE" if dialect == "postgres" else ""
    found = made.removal()
    assert f"DROP VIEW IF EXISTS v{cascade}" in found
    assert found.index(f"DROP VIEW IF EXISTS v{cascade}") < found.index(f"DROP TABLE IF EXISTS q{cascade}")
    sql, params = made.trim()
    assert sql.startswith("DELETE FROM") and params == [9]
