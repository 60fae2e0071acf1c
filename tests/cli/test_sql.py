"""``obo sql``: statements on the command line and through a pipe, and how their results look."""

import io
import json
from datetime import datetime
from decimal import Decimal

import pytest
from rich.console import Console

from framework.cli.sql_show import MOST_ROWS, Shower, distinct, printable
from framework.testing import cluster
from objects.counter import Counter
from objects.sql.database import Database
from objects.sql.result import Result

TABLE = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t VALUES (1, 'one'), (2, NULL);"


@pytest.fixture
def table(db):
    db.transaction([(text, ()) for text in TABLE.split(";")[:2]])


def test_statements_one_after_the_other(db, obo_sql):
    code, out, said = obo_sql(f"{TABLE} SELECT * FROM t; SELECT 'a;b' AS x")
    assert (code, said) == (0, "")
    assert out == (
        "+----+------+\n| id | name |\n+----+------+\n|  1 | one  |\n|  2 | NULL |\n+----+------+\n"
        "+-----+\n| x   |\n+-----+\n| a;b |\n+-----+\n"
    )


def test_csv_and_json(table, obo_sql):
    assert obo_sql("SELECT * FROM t", "--csv") == (0, "id,name\n1,one\n2,\n", "")
    _, out, _ = obo_sql("--json", "SELECT *, id FROM t")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"id": 1, "name": "one", "id_2": 1},
        {"id": 2, "name": None, "id_2": 2},
    ]
    assert obo_sql("INSERT INTO t VALUES (3, 'x')", "--csv") == (0, "", ""), "only results go to stdout"


def test_it_stops_at_the_first_error(table, obo_sql):
    code, out, said = obo_sql("SELECT nope FROM t; SELECT 2", "--csv")
    assert (code, out) == (1, "") and said.startswith("error: ") and "nope" in said and said.count("\n") == 1
    code, out, said = obo_sql("SELECT nope FROM t; SELECT 2", "--csv", "--keep-going")
    assert (code, out) == (1, "2\n2\n") and said.count("\n") == 1


def test_a_pipe(db, obo_sql):
    script = f"{TABLE}\n.mode csv\nSELECT *\n  -- a comment; with a semicolon\nFROM t;\n.tables\nSELECT 5"
    assert obo_sql(stdin=script) == (0, "id,name\n1,one\n2,\nt\n5\n5\n", "")
    code, out, said = obo_sql(stdin="SELECT 1;\nSELEC 2;\nSELECT 3;\n")
    assert code == 1 and "| 1 |" in out and "| 3 |" not in out and "SELEC" in said
    code, out, said = obo_sql("--keep-going", stdin="SELECT 1;\n.tabels\nSELECT 3;\n")
    assert code == 1 and "| 3 |" in out and "did you mean '.tables'?" in said
    assert obo_sql(stdin="") == (0, "", "")
    assert obo_sql("--csv", stdin="SELECT 1;\n.quit\nSELECT 2;") == (0, "1\n1\n", "")


def test_a_transaction_is_sent_as_a_whole(table, obo_sql):
    assert obo_sql("BEGIN; INSERT INTO t VALUES (3, 'x'); SELECT count(*) AS n FROM t; COMMIT;", "--csv")[:2] == (
        0,
        "n\n3\n",
    )
    code, _, said = obo_sql("BEGIN; INSERT INTO t VALUES (4, 'x'); INSERT INTO t VALUES (1, 'x'); COMMIT")
    assert code == 1 and "UNIQUE" in said
    assert (
        obo_sql("BEGIN; INSERT INTO t VALUES (5, 'x'); ROLLBACK; SELECT count(*) FROM t", "--csv")[1] == "count(*)\n3\n"
    )
    code, _, said = obo_sql("BEGIN; INSERT INTO t VALUES (5, 'x')")
    assert code == 1 and "the transaction was not committed: 1 statement forgotten" in said


def test_a_table_that_is_nearly_there(table, obo_sql):
    assert "did you mean 't'?" in obo_sql("SELECT * FROM tt")[2]
    assert ".tables lists those there are" in obo_sql("SELECT * FROM elsewhere")[2]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--read", "some", "SELECT 1"), "read='some': the levels are any, session, linearizable, majority"),
        (("SELECT 1", "SELECT 2"), "2 statements as 2 words"),
        (("--csv", "--json", "SELECT 1"), "--csv and --json: give one of them"),
        (("--timeout", "0", "SELECT 1"), "--timeout 0"),
        (("--object", "dp", "SELECT 1"), "no object 'dp'; known: db"),
    ],
)
def test_mistakes(nodes, obo_sql, words, complaint):
    code, out, said = obo_sql(*words)
    assert (code, out) == (2, "")
    assert complaint in said and said.startswith("obo: error:") and said.count("\n") == 1


def test_which_database(obo_sql, monkeypatch):
    with cluster({"one": Database, "two": Database, "counter": Counter}, nodes=1) as c:
        monkeypatch.setenv("OBO_AT", c.addresses["n1"])
        assert "which database? there are one, two; name it with --object NAME" in obo_sql("SELECT 1")[2]
        assert obo_sql("--object", "two", "SELECT 1", "--csv")[:2] == (0, "1\n1\n")
        assert "counter is a objects.counter:Counter, no database" in obo_sql("--object", "counter", "SELECT 1")[2]
    with cluster({"counter": Counter}, nodes=1) as c:
        monkeypatch.setenv("OBO_AT", c.addresses["n1"])
        assert "this cluster has no database" in obo_sql("SELECT 1")[2]


def test_commands(table, obo_sql):
    assert obo_sql(".tables") == (0, "t\n", "")
    assert obo_sql(".schema t")[1].startswith("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)")
    code, _, said = obo_sql(".schema tt")
    assert code == 1 and "no table 'tt'; did you mean 't'?" in said
    code, out, _ = obo_sql(".replicas")
    assert code == 0 and out.count("ready") == 3 and "all hold the same" in out
    assert obo_sql(".read majority\n")[0] == 0
    assert ".read nothing" not in obo_sql(".read nothing")[1]
    assert obo_sql(".help")[1].count("\n") >= 9
    for wrong in (".mode xml", ".timing maybe", ".tables t", ".explain", ".read nothing", ".nope"):
        code, out, said = obo_sql(wrong)
        assert (code, out) == (1, "") and said.startswith("error: "), wrong


def test_indexes_belong_to_their_table(db, obo_sql):
    db.execute("CREATE TABLE a(x); ")
    db.execute("CREATE TABLE ab(x)")
    db.execute('CREATE UNIQUE INDEX i ON "a"(x)')
    db.execute("CREATE INDEX j ON ab(x)")
    assert obo_sql(".schema a")[1].count("CREATE") == 2
    assert obo_sql(".schema")[1].count("CREATE") == 4


def test_help_names_options_and_commands(obo_sql):
    code, out, _ = obo_sql("--help")
    assert code == 0
    for word in ("--read", "--csv", "--keep-going", "import", "backup", "restore", "check", "explain"):
        assert word in out, word


def test_options_may_stand_before_a_command(table, nodes, obo_sql, monkeypatch):
    at = ",".join(nodes.addresses.values())
    monkeypatch.delenv("OBO_AT")
    code, out, _ = obo_sql("--at", at, "--object", "db", "check")
    assert code == 0 and "all that are there hold the same" in out


def shown(result, mode="table", width=80, terminal=True):
    out = io.StringIO()
    shower = Shower(mode, out=out)
    shower.console = Console(file=out, width=width, force_terminal=terminal, color_system=None, highlight=False)
    shower.show(result, 0.001)
    return out.getvalue()


def test_values_of_all_kinds():
    row = (1, 10**30, 1.5, Decimal("1.50"), "ä", b"\x00\xff", True, None, datetime(2024, 5, 6, 7, 8))
    result = Result([f"c{i}" for i in range(len(row))], [row], 1)
    text = shown(result, width=200)
    for word in (str(10**30), "1.50", "ä", "x'00ff'", "true", "NULL", "2024-05-06 07:08:00", "1 row\n"):
        assert word in text
    record = json.loads(shown(result, "json").splitlines()[0])
    assert list(record.values()) == [1, 10**30, 1.5, "1.50", "ä", "00ff", True, None, "2024-05-06T07:08:00"]


def test_a_value_does_not_steer_the_terminal():
    assert "\x1b" not in shown(Result(["a\x1b[31m"], [("x\x1b[2Jy\x07",)], 1))
    assert printable("a\tb\n") == "a\tb\n" and printable("\x1b‮") == "\\x1b\\u202e"


def test_a_wide_row_is_shown_value_by_value():
    wide = Result([f"column{i}" for i in range(12)], [("some longer text",) * 12] * 2, 2)
    text = shown(wide)
    assert "── row 2" in text and max(map(len, text.splitlines())) <= 80
    assert "── row" not in shown(wide, width=300)


def test_a_long_table_is_cut_on_a_terminal_alone():
    long = Result(["n"], [(i,) for i in range(MOST_ROWS + 5)], MOST_ROWS + 5)
    assert "5 more rows are not shown: .mode csv" in shown(long)
    assert "not shown" not in shown(long, terminal=False) and "1004" in shown(long, terminal=False)


def test_notes():
    assert shown(Result([], [], 3)) == "3 rows changed\n" and shown(Result([], [], 1)) == "1 row changed\n"


def test_distinct():
    assert distinct(["a", "a", "b", "a", "a_2"]) == ["a", "a_2", "b", "a_3", "a_2_2"]


def test_explain(table, obo_sql):
    code, out, said = obo_sql("explain", "UPDATE t SET name = 'x' WHERE id = ?", "5")
    assert (code, said) == (0, "")
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "update",
        "writes t row #5",
        "waits for",
        "whoever reads or writes t row #5",
        "whoever reads or writes table t as a whole",
        "whoever changes the schema",
        "Everything else goes on beside it.",
    ]
    out = obo_sql(".explain SELECT count(*) FROM t")[1]
    assert (
        "as a whole: no constant or parameter" in " ".join(out.split()) and "whoever writes anything in table t" in out
    )
    assert "touches everything: it changes the schema" in obo_sql("explain", "CREATE TABLE u(a)")[1]
    assert "touches no table: it waits for nobody" in obo_sql("explain", "SELECT 1")[1]
    assert "touches everything: no such table: tt" in obo_sql("explain", "SELECT * FROM tt")[1]
    code, _, said = obo_sql("explain", "ATTACH 'x' AS y")
    assert code == 1 and said.startswith("error: ATTACH is refused: one object is one database")
