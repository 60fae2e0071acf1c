"""What ``obo sql check`` waits for."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import typer

from framework.cli import sql_check, sql_replicas
from objects.sql.client import Digests

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
    monkeypatch.setattr(sql_replicas, "statuses", lambda _: NODES)
    with pytest.raises(typer.Exit) as ended:
        sql_check.run()
    assert ended.value.exit_code == 1
    assert said == ["db@n3 waits for a state: the comparison waits for it\n"]
