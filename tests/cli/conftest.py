"""For the tests of ``obo sql``: nodes with a database, and the command itself, in this process."""

import io
import sys

import pytest

from framework.cli.commands import main
from framework.testing import cluster
from objects.sql.client import Sql
from objects.sql.database import Database


@pytest.fixture(scope="module")
def nodes():
    with cluster({"db": Database}, nodes=3) as c:
        yield c


@pytest.fixture
def db(nodes):
    """Empty at the beginning of each test."""
    with nodes.connect() as orb:
        found = Sql(orb, "db")
        clear(found)
        yield found


def clear(db):
    for text in db.schema("linearizable"):
        if text.startswith("CREATE VIEW"):
            db.execute(f"DROP VIEW {text.split()[2]}")
    for _ in range(5):  # one may refer to another
        for table in db.tables("linearizable"):
            try:
                db.execute(f'DROP TABLE "{table}"')
            except Exception:
                continue
    assert db.tables("linearizable") == []


@pytest.fixture
def obo_sql(nodes, monkeypatch, capsys):
    """``obo sql WORDS`` in this process: each start costs a second."""
    monkeypatch.setenv("OBO_AT", ",".join(nodes.addresses.values()))

    def run(*words, stdin=None):
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin or ""))
        monkeypatch.setattr(sys, "argv", ["obo", "sql", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return ended.value.code or 0, told.out, told.err

    return run


def only_at(orb, replica, statement):
    """What must never happen: one replica has something that the others have not."""
    proxy = orb.object(Database, replica.partition("@")[0])
    assert orb.crec(orb.mcast(proxy.execute.request(statement), to=[replica]))[0].ok
