"""Footprints of a real replica: they follow the schema, and carry its version."""

import pytest

from objects.sql import ProgrammingError
from tests.objects.sql.footprint.test_keys import told


def touched(one, sql, *params):
    found = one.database.touched("execute", (sql, list(params)))
    return told(found.keys), found.basis


def test_they_follow_the_schema(db, dialect):
    db.do(f"CREATE TABLE t (id int PRIMARY KEY, a int) {'WITHOUT ROWID' if dialect == 'sqlite' else ''}")
    keys, before = touched(db, "INSERT INTO t VALUES (?, ?)", 5, 6)
    assert keys == "t:iw t[#5]:w"
    db.do("CREATE UNIQUE INDEX i ON t (a)")
    keys, after = touched(db, "INSERT INTO t VALUES (?, ?)", 5, 6)
    assert keys == "t/a:iw t/a[#6]:w t:iw t[#5]:w"
    assert after > before


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
def test_rows_that_draw_numbers_need_an_order(db):
    db.do("CREATE TABLE t (id int PRIMARY KEY, a float)")
    db.do("INSERT INTO t VALUES (1, random()), (2, random())")
    db.do("UPDATE t SET a = random() WHERE id = 1")
    before = db.ask("SELECT * FROM t ORDER BY id")
    with pytest.raises(ProgrammingError, match=r"an UPDATE of 2 rows: .* update one row at a time"):
        db.do("UPDATE t SET a = random()")
    assert db.ask("SELECT * FROM t ORDER BY id") == before


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
def test_the_time_of_the_request_in_words_of_the_grammar(db):
    db.do("CREATE TABLE t (id int PRIMARY KEY, a timestamptz DEFAULT CURRENT_TIMESTAMP, b date, c text, d timestamp)")
    db.do(
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.d := LOCALTIMESTAMP(0) + 7 % 4 * '1s'::"
        "interval; RETURN NEW; END $$"
    )
    db.do("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()")
    db.do("INSERT INTO t (id, b, c) VALUES (:id, CURRENT_DATE, '100%')", {"id": 1})
    (row,) = db.ask("SELECT a::text, b::text, c, d::text FROM t")
    assert row == ("2023-11-14 22:13:20.123+00", "2023-11-14", "100%", "2023-11-14 22:13:23")
