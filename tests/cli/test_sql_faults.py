"""``obo sql`` when nodes are gone: what still works, and what is said about the rest."""

import pytest

from framework.testing import cluster
from objects.sql.client import Sql
from objects.sql.database import Database


@pytest.fixture
def nodes():
    with cluster({"db": Database}, nodes=3) as c:
        yield c


def test_one_gone_then_another(nodes, obo_sql):
    assert obo_sql("CREATE TABLE t(a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)")[0] == 0
    before = Sql(nodes.connect("n1"), "db")
    assert nodes.settle()  # a read at the level "any" sees only what its own replica has performed
    nodes.crash("n3")
    for level in ("any", "session", "linearizable", "majority"):
        assert obo_sql("--csv", "--read", level, "SELECT * FROM t") == (0, "a\n1\n", ""), level
    assert obo_sql("INSERT INTO t VALUES (2)") == (0, "", "")
    code, out, said = obo_sql("check")
    assert code == 1 and "all that are there hold the same" in out and "db@n3 did not answer" in said
    out = obo_sql(".replicas")[1]
    assert out.count("ready") == 2 and "not reached" in out and "equal, of those that are there; missing: db@n3" in out
    nodes.crash("n2")
    code, out, said = obo_sql("--timeout", "5", "INSERT INTO t VALUES (3)")
    assert (code, out) == (1, "") and said.startswith("error: ") and said.count("\n") == 1
    assert "obo status says which nodes are there" in said or "it may have happened" in said
    assert before.query("SELECT * FROM t", read="any").rows == [(1,), (2,)]
    code, out, said = obo_sql("--timeout", "2", "SELECT * FROM t")
    assert (code, out) == (2, "") and "no node could be reached" in said and said.count("\n") == 1
