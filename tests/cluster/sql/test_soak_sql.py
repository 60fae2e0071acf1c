"""A short ``obo soak --sql``: replicas are killed under 16 clients, and every row is there once."""

import json

import pytest

from framework.bench.soak_group import Plan
from framework.bench.soak_sql import TOTAL, SqlClient, SqlSoak, Written, wrong_rows
from framework.errors import OutcomeUnknown, RemoteError
from objects.sql import Result
from tests.cli.run_obo import obo


@pytest.mark.full
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_what_was_acknowledged_is_there_once(tmp_path, database):
    words = ["--postgres"] if database == "postgres" else []
    done = obo("soak", "--sql", *words, "--minutes", 0.35, "--seed", 3, "--trace", tmp_path, "--json", timeout=400)
    said = json.loads(done.stdout)
    assert said["problems"] == [] and done.returncode == 0, done.stderr
    assert said["database"] == database and said["clients"] == 16
    assert said["faults"]["kill"] >= 1 and min(said["rows"].values()) > 0
    first, *others = said["digests"].values()
    assert others == [first, first] and first.keys() >= {"accounts", "tallies", "events", "numbered"}


def test_mistakes_are_told(tmp_path):
    assert "--postgres is for --sql" in obo("soak", "--postgres").stderr
    (tmp_path / "data").mkdir()
    assert "an earlier run: give another directory" in obo("soak", "--sql", "--trace", tmp_path).stderr


class Db:
    """Gives or raises what it was told to."""

    def __init__(self, found):
        self.found = found

    def execute(self, *_):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    query = transaction = execute


class Orb:
    home = "n1"

    def __init__(self, found=None):
        self.db = Db(found)

    def object(self, *_):
        return self.db


def client(table, found):
    made = SqlClient("client1", Orb(found), "0")
    made._choose = lambda: (table, made._db.execute)
    made._one()
    return made


def test_what_a_client_makes_of_an_answer():
    assert client("events", Result([], [], 1)).written["events"] == ({"client1-1"}, set())
    lost = client("events", OutcomeUnknown("nobody knows"))
    assert lost.written["events"] == (set(), {"client1-1"}) and "home n1, then n1: events" in lost.errors[0]
    refused = client("accounts", RemoteError("IntegrityError: CHECK"))
    assert refused.refused == 1 and not refused.errors
    assert client("events", RemoteError("IntegrityError: twice")).errors, "a row of its own, performed twice"
    assert "it has counted to 0, reads 3" in client("reading", Result(["count"], [(3,)], 1)).errors[0]


def test_rows_that_are_lost_or_doubled_are_a_problem():
    written = Written({"e1", "e2"}, {"e3"})
    assert list(wrong_rows(["e1", "e2"], written)) == list(wrong_rows(["e1", "e2", "e3"], written)) == []
    assert list(wrong_rows(["e1"], written)) == ["1 acknowledged rows are not there: e2"]
    assert list(wrong_rows(["e1", "e2", "e2"], written)) == ["1 rows are there more than once: e2"]
    assert list(wrong_rows(["e1", "e2", "e9"], written)) == ["1 rows that nobody was told of: e9"]


class Looked(SqlSoak):
    """What the replicas say is given."""

    def __init__(self, total=TOTAL, count=2):
        super().__init__(Plan(clients=1), None, {})
        self.clients.append(SqlClient("client1", Orb(), "0"))
        self.clients[0].written["tallies"].sure.update({"t1", "t2"})
        self.found = {"accounts": [(total,)], "tallies": [("client1", count)]}

    def _everywhere(self, method, sql, params=()):
        return {"db@n1": Result([], self.found.get(sql.split("FROM ")[1].split()[0], []), 0)}


@pytest.mark.parametrize(
    ("found", "digests", "said"),
    [
        ({}, {"db@n1": {"a": "1"}, "db@n2": {"a": "1"}}, ""),
        ({}, {"db@n1": {"a": "1"}, "db@n2": {"a": "2"}}, "the states of the replicas differ"),
        ({"total": TOTAL - 1}, {}, f"db@n1 has {TOTAL - 1} on its accounts"),
        ({"count": 3}, {}, "has counted 3 calls of client1, which were 2"),
    ],
)
def test_what_is_wrong_in_the_end(found, digests, said):
    problems = list(Looked(**found)._wrong(digests))
    assert (len(problems) == 1 and said in problems[0]) if said else problems == []
