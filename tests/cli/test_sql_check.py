"""``obo sql check``: what it waits for, and what differs, on nodes of its own: a replica without a table stays so."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import typer

from framework.cli import sql_check
from framework.errors import Unavailable
from objects.sql.client import Digests
from tests.cli.conftest import only_at

STEADY = {"state": "steady", "why": ""}
NODES = {
    "n1": {"group": STEADY, "transfers": {"unready": {}, "fetching": [], "adopting": []}},
    "n2": {"error": "no answer"},
    "n3": {"group": STEADY, "transfers": {"unready": {"db@n3": []}, "fetching": [], "adopting": []}},
}


def test_it_says_which_replica_it_waits_for(monkeypatch, capsys):
    said = []

    def digests():
        said.append(capsys.readouterr().err)
        return Digests({"db@n1": {"t": "1"}, "db@n3": {"t": "1"}}, ("db@n2",))

    about = {"replicas": [f"db@{node}" for node in NODES], "nodes": NODES}
    found = SimpleNamespace(db=SimpleNamespace(digests=digests), about=about, nodes=NODES, access={})

    @contextmanager
    def database(*_):
        yield found

    monkeypatch.setattr(sql_check, "database", database)
    monkeypatch.setattr(sql_check, "statuses", lambda _: NODES)
    with pytest.raises(typer.Exit) as ended:
        sql_check.run()
    assert ended.value.exit_code == 1
    assert said == ["db@n3 waits for a state: the comparison waits for it\n"]


def checked(monkeypatch, nodes):
    about = {"replicas": [f"db@{node}" for node in nodes], "nodes": nodes}
    digests = Digests({f"db@{node}": {"t": "1"} for node in nodes}, ())
    found = SimpleNamespace(db=SimpleNamespace(digests=lambda: digests), about=about, nodes=nodes, access={})

    @contextmanager
    def database(*_):
        yield found

    monkeypatch.setattr(sql_check, "database", database)
    monkeypatch.setattr(sql_check, "statuses", lambda _: nodes)
    sql_check.run()


def moving(**more):
    return {"group": STEADY, "transfers": {"unready": {}, "fetching": [], "adopting": [], **more}}


def test_it_says_what_was_found_when_the_replicas_started(monkeypatch, capsys):
    """All is equal, and it was not so before."""
    kept = {"replica": "db@n2", "kind": "differs", "path": "/x/database.sqlite.differs-1", "bytes": 12345}
    other = {**kept, "replica": "other@n2"}
    found = {"db@n1": "db@n2 DIFFERS from the 1 others", "other@n1": "not asked"}
    with pytest.raises(typer.Exit) as ended:
        checked(monkeypatch, {"n1": moving(found=found), "n2": {**moving(), "kept": [kept, other]}})
    assert ended.value.exit_code == 0
    assert capsys.readouterr().err == (
        "note: when they started: db@n2 DIFFERS from the 1 others\n"
        "note: db@n2 keeps a state that was not that of the majority: /x/database.sqlite.differs-1 (12,345 bytes); "
        "remove it when nobody needs it\n"
    )


def test_it_does_not_wait_for_what_an_operator_has_to_decide(monkeypatch):
    with pytest.raises(Unavailable, match="db does not begin: no majority"):
        checked(monkeypatch, {"n1": moving(refused={"db@n1": "db does not begin: no majority"}), "n2": {"error": "?"}})


def test_check(db, obo_sql):
    db.execute("CREATE TABLE a(x)")
    db.execute("CREATE TABLE b(x)")
    code, out, said = obo_sql("check")
    assert (code, said) == (0, "") and out.count("2 tables, digest") == 3
    only_at(db.orb, "db@n2", "INSERT INTO b VALUES (1)")
    code, out, said = obo_sql("check")
    assert code == 1 and said == "obo: error: table b differs at db@n2: the rows are not the same\n"
    only_at(db.orb, "db@n3", "DROP TABLE a")
    code, out, said = obo_sql("check", "--json")
    assert code == 1 and "table a differs at db@n3: db@n3 has no such table" in said
    assert set(json.loads(out)["differing"]) == {"a", "b"}
    assert "they differ in a, b" in obo_sql(".replicas")[1]
