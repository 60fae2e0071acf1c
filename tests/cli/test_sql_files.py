"""``obo sql import``, ``backup``, ``restore`` and ``check``."""

import datetime as dt
import gzip
import json
from decimal import Decimal
from uuid import UUID

import pytest

from framework.cli import sql_backup, sql_import
from framework.cli.sql_file import from_json, to_json

# import


@pytest.fixture
def people(tmp_path):
    file = tmp_path / "people.csv"
    lines = [f'{i},"name ""{i}"", Esq.",{i / 4},{i % 3 or ""}' for i in range(2500)]
    file.write_text("id,name,share,team\n" + "\n".join(lines) + "\n")
    return file


def test_import_makes_the_table(db, obo_sql, people):
    code, out, said = obo_sql("import", people, "--table", "people", "--create", "--key", "id")
    assert (code, out) == (0, "") and said.startswith("2,500 rows into people in")
    assert db.query("SELECT * FROM people WHERE id = 6").rows == [(6, 'name "6", Esq.', 1.5, None)]
    assert db.query("SELECT count(*), sum(share), sum(team) FROM people").rows == [(2500, 780937.5, 2499)]
    assert "PRIMARY KEY" in db.schema()[0]


def test_import_into_a_table_that_is_there(db, obo_sql, people):
    db.execute("CREATE TABLE people(team INTEGER, extra TEXT DEFAULT 'x', id INTEGER, name TEXT, share REAL)")
    assert obo_sql("import", people, "--table", "people", "--null", "1")[0] == 0
    assert db.query("SELECT team, extra, share FROM people WHERE id IN (2, 4) ORDER BY id").rows == [
        (2, "x", 0.5),
        (None, "x", 1.0),
    ]


def test_types_are_as_narrow_as_the_file_allows(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a;b;c;d;e;f\n1;2.5;x;;007;-5\n-2;1e3;3;;1;3000000000\n")
    source = sql_import.Source(file, ";", "")
    assert source.kinds() == ["INTEGER", "DOUBLE PRECISION", "TEXT", "TEXT", "TEXT", "BIGINT"]


def test_a_failed_import_says_which_rows_are_in_and_goes_on(db, obo_sql, people):
    text = people.read_text().splitlines()
    text[2101] = text[2100]
    people.write_text("\n".join(text))
    code, _, said = obo_sql("import", people, "--table", "p", "--create", "--key", "id")
    assert code == 1 and "UNIQUE" in said
    assert "Rows 1 to 2,000 are in. None of rows 2,001 to 2,500 is in" in said and "--skip 2000" in said
    assert db.query("SELECT count(*) FROM p").rows == [(2000,)]
    text[2101] = "9999,x,1,1"
    people.write_text("\n".join(text))
    assert obo_sql("import", people, "--table", "p", "--create", "--key", "id", "--skip", "2000")[0] == 0
    assert db.query("SELECT count(*), count(DISTINCT id) FROM p").rows == [(2500, 2500)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("a,a\n1,2\n", "names 'a' twice"),
        ("a,\n1,2\n", "without a name"),
        ("a,b\n1,2\n1\n", "line 3: 1 fields, but the first line names 2"),
        ('a,b\n1,"2\n', "unexpected end of data"),
        ("a,b\n1,2\n".encode("utf-16"), "line 1:"),
    ],
)
def test_files_that_are_wrong(db, obo_sql, tmp_path, text, complaint):
    file = tmp_path / "x.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    code, _, said = obo_sql("import", file, "--table", "x", "--create")
    assert code == 2 and complaint in said and said.count("\n") == 1
    assert db.tables() == []


def test_a_line_that_is_wrong_further_down(db, obo_sql, tmp_path):
    db.execute("CREATE TABLE x(a, b)")
    file = tmp_path / "x.csv"
    file.write_text("a,b\n" + "1,2\n" * 1500 + "3\n")
    code, _, said = obo_sql("import", file, "--table", "x")
    assert code == 1 and "line 1502: 1 fields" in said and "Rows 1 to 1,000 are in" in said
    assert db.query("SELECT count(*) FROM x").rows == [(1000,)]


def test_mistakes_of_import(db, obo_sql, people):
    db.execute("CREATE TABLE peoples(id, nam)")
    assert "no table 'people'; did you mean 'peoples'?" in obo_sql("import", people, "--table", "people")[2]
    assert "peoples has no column 'name'; did you mean 'nam'?" in obo_sql("import", people, "--table", "peoples")[2]
    assert "add --create" in obo_sql("import", people, "--table", "x", "--key", "id")[2]
    wrong = obo_sql("import", people, "--table", "x", "--key", "ids", "--create")[2]
    assert "--key ids: no such column; did you mean 'id'?" in wrong
    assert "one character" in obo_sql("import", people, "--table", "x", "--delimiter", "--")[2]
    assert "No such file" in obo_sql("import", people.with_name("none"), "--table", "x")[2]


# backup and restore


def fill(db):
    """Among them what a restore could trip over: a view, a trigger, rows that refer to later ones."""
    for text in (
        "CREATE TABLE child(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent(id))",
        "CREATE TABLE parent(id INTEGER PRIMARY KEY, boss INTEGER REFERENCES parent(id), name TEXT)",
        "CREATE TABLE kinds(a, b BLOB, c DECIMAL, d TIMESTAMP, twice GENERATED ALWAYS AS (a || a) STORED)",
        'CREATE TABLE "odd; name"("a ""b""" TEXT, PRIMARY KEY ("a ""b""")) WITHOUT ROWID',
        "CREATE TABLE log(what TEXT)",
        "CREATE VIEW names AS SELECT name FROM parent",
        "CREATE INDEX by_name ON parent(name)",
        "CREATE TRIGGER t AFTER INSERT ON parent BEGIN INSERT INTO log VALUES ('parent; ' || new.id); END",
    ):
        db.execute(text)
    db.execute("INSERT INTO parent VALUES (9, NULL, 'nine')")
    db.executemany("INSERT INTO parent VALUES (?, ?, ?)", [[1, 9, "one"], [2, 1, None], [3, 9, "drei 日本"]])
    db.executemany("INSERT INTO child VALUES (?, ?)", [[i, (1, 2, 3, 9)[i % 4]] for i in range(50)])
    db.executemany("INSERT INTO kinds(a, b, c, d) VALUES (?, ?, ?, ?)", [[1.5, b"\x00\xff", 1, "x"], [None] * 4])
    db.execute("INSERT INTO kinds(a, d) VALUES ('text', '2024-01-02T03:04')")
    db.execute('INSERT INTO "odd; name" VALUES (?)', ["it's"])


def everything(db):
    return {t: sorted(map(repr, db.query(f'SELECT * FROM "{t}"').rows)) for t in db.tables()}, sorted(db.schema())


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("suffix", [".json", ".gz"])
def test_what_was_backed_up_comes_back(db, obo_sql, tmp_path, monkeypatch, small, suffix):
    if not small:  # read in pages
        monkeypatch.setattr(sql_backup, "SMALL", 0)
        monkeypatch.setattr(sql_backup, "PAGE", 100)
    fill(db)
    before, digest = everything(db), db.digest()
    file = tmp_path / f"backup{suffix}"
    code, out, said = obo_sql("backup", file)
    assert (code, out) == (0, "") and said.startswith("62 rows of 5 tables in") and not list(tmp_path.glob("*.part"))
    db.execute("DELETE FROM child")
    db.execute("CREATE TABLE other(x)")
    code, _, said = obo_sql("restore", file)
    assert code == 2 and "has tables: child, kinds, log, odd; name, other, ..." in said
    code, _, said = obo_sql("restore", file, "--replace")
    assert code == 0, said
    assert said == "62 rows of 5 tables; all replicas hold the same, as it was backed up\n"
    assert everything(db) == before and db.digest() == digest


def test_a_backup_can_be_read_by_others(db, obo_sql, tmp_path):
    db.execute("CREATE TABLE t(a)")
    db.executemany("INSERT INTO t VALUES (?)", [[1], ["zwei"], [b"3"]])
    assert obo_sql("backup", tmp_path / "b.gz")[0] == 0
    lines = [json.loads(line) for line in gzip.decompress((tmp_path / "b.gz").read_bytes()).splitlines()]
    assert lines[0]["schema"] == ["CREATE TABLE t(a)"] and lines[0]["dialect"] == "sqlite"
    assert lines[1:5] == [{"table": "t", "columns": ["a"]}, [1], ["zwei"], [{"bytes": "Mw=="}]]
    assert lines[-1]["rows"] == 3 and set(lines[-1]["digests"]) == {"t"}


@pytest.mark.parametrize("suffix", [".json", ".gz"])
def test_a_file_that_is_not_whole_is_not_taken(db, obo_sql, tmp_path, suffix):
    fill(db)
    file, bad = tmp_path / f"b{suffix}", tmp_path / f"bad{suffix}"
    obo_sql("backup", file)
    data = file.read_bytes()
    before = everything(db)
    for wrong in (data[:-2], data[: len(data) // 2], data[:-40], b"", b"nothing", data.replace(b"nine", b"none")):
        if wrong == data:  # it is compressed
            continue
        bad.write_bytes(wrong)
        code, _, said = obo_sql("restore", bad, "--replace")
        assert code == 2 and str(bad) in said and said.count("\n") == 1
    assert everything(db) == before, "nothing was dropped"
    assert "No such file" in obo_sql("restore", tmp_path / "none")[2]
    assert "is there already" in obo_sql("backup", file)[2]
    assert obo_sql("backup", file, "--force")[0] == 0


def test_a_write_meanwhile_is_noticed(db, obo_sql, tmp_path, monkeypatch):
    """In pages: tried again, and given up with a reason. At once: it is one point, whatever happens."""
    db.execute("CREATE TABLE t(a)")
    db.executemany("INSERT INTO t VALUES (?)", [[i] for i in range(10)])
    count = sql_backup.Backup._count
    writes = [0]

    def meanwhile(self, table):
        writes[0] += 1
        db.execute("INSERT INTO t VALUES (?)", [100 + writes[0]])
        return count(self, table)

    monkeypatch.setattr(sql_backup.Backup, "_count", meanwhile)
    assert obo_sql("backup", tmp_path / "small")[0] == 0
    assert json.loads((tmp_path / "small").read_text().splitlines()[-1])["digests"] is None
    monkeypatch.setattr(sql_backup, "SMALL", 0)
    code, _, said = obo_sql("backup", tmp_path / "large")
    assert code == 2 and "db changed while it was being read, 3 times" in said and "once more (3 of 3)" in said
    assert [p.name for p in tmp_path.iterdir()] == ["small"]


def test_a_restore_that_fails_says_so(db, obo_sql, tmp_path):
    db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY)")
    db.execute("INSERT INTO t VALUES (1)")
    obo_sql("backup", tmp_path / "b")
    lines = (tmp_path / "b").read_text().splitlines()
    header = json.loads(lines[0])
    header["schema"].append("CREATE INDEX i ON nowhere(x)")
    write_whole(tmp_path / "b", [json.dumps(header), *lines[1:-1]], json.loads(lines[-1]))
    code, _, said = obo_sql("restore", tmp_path / "b", "--replace")
    assert code == 1 and "nowhere" in said and "--replace begins anew" in said


def test_a_restore_compares_with_what_was_backed_up(db, obo_sql, tmp_path):
    db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY)")
    db.execute("INSERT INTO t VALUES (1)")
    obo_sql("backup", tmp_path / "b")
    lines = (tmp_path / "b").read_text().splitlines()
    lines[2] = "[2]"
    write_whole(tmp_path / "b", lines[:-1], json.loads(lines[-1]))
    code, _, said = obo_sql("restore", tmp_path / "b", "--replace")
    assert code == 1 and "t is not what it was when it was backed up" in said


def write_whole(file, lines, trailer):
    """With a right sum, whatever is in it."""
    import hashlib

    text = "".join(line + "\n" for line in lines)
    trailer["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    file.write_text(text + json.dumps(trailer) + "\n")


def test_values_in_a_file():
    zone = dt.timezone(dt.timedelta(hours=2))
    values = [
        None, True, 1, 10**40, 1.5, float("inf"), "ä", "\ud800", b"\x00", Decimal("1.50"), UUID(int=5),
        dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 1, 2, tzinfo=zone), dt.date(2024, 1, 2),
        dt.time(1, 2, 3), dt.timedelta(-1, 2, 3), [1, [b"x"]], {"a": Decimal(1), "list": 2},
    ]  # fmt: skip
    for value in values:
        found = from_json(json.loads(json.dumps(to_json(value))))
        assert found == value and type(found) is type(value)
