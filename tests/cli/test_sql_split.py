"""Where SQL statements end."""

import random

import pytest

from framework.cli.sql_split import Splitter, bare, first_word, only_reads, split

TRIGGER = """CREATE TRIGGER log AFTER INSERT ON t BEGIN
  INSERT INTO history VALUES (new.id, 'a;b');
  UPDATE t SET n = CASE WHEN n > 1 THEN 1 ELSE 2 END;
END;"""
FUNCTION = """CREATE FUNCTION f() RETURNS trigger AS $body$
BEGIN
  RAISE NOTICE 'it''s; %', $1; RETURN new;
END $body$ LANGUAGE plpgsql;"""
POSTGRES_TRIGGER = "CREATE TRIGGER log AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();"

STATEMENTS = [
    "SELECT 1;",
    "SELECT ';', 'it''s;', '';",
    'SELECT "a;b", "x"";" FROM "t;";',
    "SELECT `a;b` FROM [t;u];",
    "SELECT 1 -- one; two\n + 1;",
    "SELECT 1 /* one; ' two */ + 1;",
    "SELECT 4 - 3, 4/2, -1;",
    r"SELECT E'it\'s; \\';",
    "SELECT 'not\\' || 'escaped;';",
    "SELECT arr[1], arr[2];",
    "SELECT $$a;b$$, $x$a;$$;$x$;",
    "SELECT $1, a$b FROM t;",
    TRIGGER,
    FUNCTION,
    POSTGRES_TRIGGER,
    "INSERT INTO ø VALUES ('grüße; 日本');",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_is_one_whole(statement):
    assert split(statement) == [statement]
    assert split(f"{statement}\n{statement} SELECT 2") == [statement, statement, "SELECT 2"]


def test_all_of_them_in_bits_of_any_size():
    text = "\n".join(STATEMENTS)
    chance = random.Random(1)
    for _ in range(300):
        splitter, found, at = Splitter(), [], 0
        while at < len(text):
            size = chance.choice((1, 2, 5, 40))
            found += splitter.feed(text[at : at + size])
            at += size
        assert found == STATEMENTS
        assert splitter.is_blank


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (" ;; ; ", []),
        ("-- nothing", []),
        ("/* nothing */ ; -- ;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
        ("-- why\nSELECT 1; -- done", ["-- why\nSELECT 1;"]),
        ("SELECT 1; /* open", ["SELECT 1;"]),
    ],
)
def test_what_is_no_statement(text, found):
    assert split(text) == found


def test_a_trigger_that_is_not_finished_waits():
    splitter = Splitter()
    assert splitter.feed(TRIGGER.removesuffix("END;")) == []
    assert splitter.feed("END;") == [TRIGGER]
    assert splitter.feed("BEGIN;") == ["BEGIN;"], "a transaction is no trigger"


def test_clear_takes_back_what_was_begun():
    splitter = Splitter()
    splitter.feed("SELECT 'x")
    assert splitter.rest == "SELECT 'x" and not splitter.is_blank
    splitter.clear()
    assert splitter.feed("SELECT 1;") == ["SELECT 1;"]


@pytest.mark.parametrize(
    ("statement", "first", "reads"),
    [
        ("select 1", "SELECT", True),
        ("  -- x\n (SELECT 1)", "SELECT", True),
        ("VALUES (1)", "VALUES", True),
        ("WITH a AS (SELECT 'delete') SELECT * FROM a", "WITH", True),
        ("WITH a AS (SELECT replace(x, 'a', 'b') FROM t) SELECT * FROM a", "WITH", True),
        ("WITH a AS (SELECT 1) DELETE FROM t", "WITH", False),
        ("WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM a", "WITH", False),
        ("insert into t values (1)", "INSERT", False),
        ("CREATE TABLE t(a)", "CREATE", False),
        ("'?", "", False),
    ],
)
def test_kinds(statement, first, reads):
    assert (first_word(statement), only_reads(statement)) == (first, reads)


def test_bare():
    assert bare("SELECT 'a', \"b\" -- c\n, $$d$$ /* e */ FROM [f]") == "SELECT '', \"\"  , $$   FROM [["
