"""What a statement touches: a table of statements and footprints, for SQLite."""

import sqlite3
from typing import Any

import pytest

from framework import BadRequest, Keys
from objects.sql.footprint import Schema, explain, read_sqlite, touches, union
from objects.sql.footprint.template import CONSTRAINT, MOST_KEYS, ROW, SEQUENCE
from objects.sql.statement import understand

SCHEMA = """
    CREATE TABLE acc (id INTEGER PRIMARY KEY, bal INT);
    CREATE TABLE user (id INTEGER PRIMARY KEY, mail TEXT UNIQUE, a, b, UNIQUE (a, b));
    CREATE TABLE item (user INT REFERENCES user(id) ON DELETE CASCADE, no INT, t, PRIMARY KEY (user, no)) WITHOUT ROWID;
    CREATE TABLE note (item INT, no INT, x, FOREIGN KEY (item, no) REFERENCES item, PRIMARY KEY (no)) WITHOUT ROWID;
    CREATE TABLE node (id INTEGER PRIMARY KEY, up INT REFERENCES node);
    CREATE TABLE word (w TEXT PRIMARY KEY, n INT);
    CREATE TABLE clock (id INTEGER PRIMARY KEY AUTOINCREMENT, at DEFAULT CURRENT_TIMESTAMP);
    CREATE TABLE heap (a, b);
    CREATE TABLE odd (id INTEGER PRIMARY KEY, a, b);
    CREATE UNIQUE INDEX odd_ab ON odd (a) WHERE b > 0;
    CREATE TABLE log (id INTEGER PRIMARY KEY, t);
    CREATE TABLE seen (id INTEGER PRIMARY KEY, v);
    CREATE TRIGGER seen_log AFTER UPDATE ON seen BEGIN INSERT INTO log (t) VALUES (new.v); END;
    CREATE VIEW rich AS SELECT * FROM acc WHERE bal > 1000;
"""


@pytest.fixture(scope="module")
def schema() -> Schema:
    made = sqlite3.connect(":memory:")
    made.executescript(SCHEMA)
    return read_sqlite(made, 7)


def keys(schema: Schema, text: str, params: Any = ()) -> Keys | None:
    return touches(understand(text, "sqlite"), params, schema)


def told(found: Keys | None) -> str:
    """Short: rows are t[...], values of unique constraints t/constraint[...], sequences =s."""
    if found is None:
        return "everything"
    parts = []
    for key, mode in found:
        start, of_row, row = key.replace(CONSTRAINT, "/").replace(SEQUENCE, "=").partition(ROW)
        parts.append(f"{start}[{row}]:{mode}" if of_row else f"{start}:{mode}")
    return " ".join(sorted(parts))


ROWS = [
    # by the primary key
    ("SELECT * FROM acc WHERE id = ?", [5], "acc:ir acc[#5]:r"),
    ("select bal from ACC as a where A.ID = 5 and bal > 3", [], "acc:ir acc[#5]:r"),
    ("SELECT * FROM acc WHERE 5 = id AND (bal = 1 OR bal = 2)", [], "acc:ir acc[#5]:r"),
    ("SELECT * FROM acc WHERE rowid = -5", [], "acc:ir acc[#-5]:r"),
    ("SELECT * FROM main.acc WHERE id IN (1, ?)", [2], "acc:ir acc[#1]:r acc[#2]:r"),
    ("SELECT * FROM acc INDEXED BY nothing WHERE id = 1", [], "everything"),  # an error of SQLite's
    ("UPDATE acc SET bal = bal + :n WHERE id = :i", {"n": 1, "i": 2}, "acc:iw acc[#2]:w"),
    ("UPDATE acc SET bal = ?2 WHERE id = ?1", [2, 1], "acc:iw acc[#2]:w"),
    ("UPDATE acc SET id = 7 WHERE id = 5", [], "acc:iw acc[#5]:w acc[#7]:w"),
    ("DELETE FROM acc WHERE id = 5", [], "acc:iw acc[#5]:w"),
    ("INSERT INTO acc VALUES (1, 2), (3, 4)", [], "acc:iw acc[#1]:w acc[#3]:w"),
    ("INSERT INTO acc VALUES (1, 2), (1, 4)", [], "acc:iw acc[#1]:w"),
    ("INSERT INTO acc (bal, id) VALUES (?, ?)", [2, 1], "acc:iw acc[#1]:w"),
    ("INSERT OR IGNORE INTO acc VALUES (1, 2)", [], "acc:iw acc[#1]:w"),
    ("REPLACE INTO acc VALUES (1, 2)", [], "acc:iw acc[#1]:w"),
    ("INSERT INTO acc VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET bal = excluded.bal", [], "acc:iw acc[#1]:w"),
    ("INSERT INTO acc VALUES (1, 2) ON CONFLICT DO NOTHING", [], "acc:iw acc[#1]:w"),
    ("INSERT INTO clock (id) VALUES (1)", [], "clock:iw clock[#1]:w"),
    ("UPDATE item SET t = 1 WHERE user = ? AND no = ?", [1, 2], "item:iw item[2:#12:#2]:w"),
    ("UPDATE word SET n = 1 WHERE w = 'Ann '", [], "word:iw word[ann]:w"),
    # two of them
    ("SELECT * FROM acc, user WHERE acc.id = 1 AND user.id = 2", [], "acc:ir acc[#1]:r user:ir user[#2]:r"),
    ("SELECT * FROM acc JOIN log ON log.id = acc.id WHERE acc.id = 1", [], "acc:ir acc[#1]:r log:r"),
    # no primary key, or not all of it
    ("SELECT * FROM acc", [], "acc:r"),
    ("SELECT * FROM acc WHERE id > 5", [], "acc:r"),
    ("SELECT * FROM acc WHERE id = 5 OR bal = 3", [], "acc:r"),
    ("SELECT * FROM acc WHERE id = bal", [], "acc:r"),
    ("SELECT * FROM acc WHERE id = 5 IS NOT NULL", [], "acc:r"),
    ("SELECT * FROM acc a, acc b WHERE a.id = 1", [], "acc:r"),
    ("SELECT count(*) FROM acc", [], "acc:r"),
    ("UPDATE acc SET bal = 0", [], "acc:w"),
    ("UPDATE item SET t = 1 WHERE user = 1", [], "item:w"),
    ("UPDATE acc SET id = id + 1 WHERE id = 5", [], "acc:w"),
    ("INSERT INTO acc (bal) VALUES (1)", [], "acc:w"),
    ("INSERT INTO acc VALUES (?, 1)", [None], "acc:w"),
    ("INSERT INTO acc DEFAULT VALUES", [], "acc:w"),
    ("INSERT INTO acc SELECT * FROM log ORDER BY id", [], "acc:w log:r"),
    ("INSERT INTO clock (at) VALUES (1)", [], "clock:w"),
    ("INSERT INTO word VALUES ('a', 1)", [], "word:w"),  # SQLite numbers its rows
    ("INSERT INTO heap VALUES (1, 2)", [], "heap:w"),
    ("DELETE FROM heap WHERE rowid = 1", [], "heap:w"),
    # values that may be equal in more than one way
    ("SELECT * FROM acc WHERE id = ?", ["5"], "acc:r"),
    ("SELECT * FROM acc WHERE id = ?", [5.0], "acc:ir acc[#5]:r"),
    ("SELECT * FROM acc WHERE id = ?", [True], "acc:ir acc[#1]:r"),
    ("SELECT * FROM word WHERE w = 5", [], "word:r"),
    ("UPDATE acc SET bal = 1 WHERE id = ?", [1 << 63], "acc:w"),
    # subqueries, views, triggers
    ("UPDATE acc SET bal = (SELECT max(id) FROM log) WHERE id = 1", [], "acc:iw acc[#1]:w log:r"),
    ("UPDATE acc SET bal = (SELECT max(bal) FROM acc) WHERE id = 1", [], "acc:w"),
    ("SELECT * FROM rich WHERE id = 1", [], "acc:r"),
    ("UPDATE seen SET v = 1 WHERE id = 1", [], "log:w seen:w"),
    ("DELETE FROM seen WHERE id = 1", [], "seen:iw seen[#1]:w"),
    ("WITH x AS (SELECT 1) UPDATE acc SET bal = 1 WHERE id = 1", [], "acc:w"),
    # unique values
    ("INSERT INTO user VALUES (1, 'A', NULL, 2)", [], "user/mail:iw user/mail[a]:w user:iw user[#1]:w"),
    (
        "INSERT INTO user VALUES (1, NULL, ?, ?)",
        [1, "x"],
        "user/a,b:iw user/a,b[2:#11:x]:w user:iw user[#1]:w",
    ),
    ("INSERT INTO user VALUES (1, lower('A'), NULL, 2)", [], "user/mail:w user:iw user[#1]:w"),
    ("UPDATE user SET mail = 'a' WHERE id = 1", [], "user/mail:w user:iw user[#1]:w"),
    ("UPDATE item SET t = 1 WHERE user = 1 AND no = 2", [], "item:iw item[2:#12:#2]:w"),
    ("REPLACE INTO user VALUES (1, 'a', 1, 2)", [], "item:w note:r user:w"),
    ("UPDATE odd SET a = 1 WHERE id = 1", [], "odd:w"),
    ("SELECT * FROM odd WHERE id = 1", [], "odd:ir odd[#1]:r"),
    # foreign keys
    ("INSERT INTO item VALUES (1, 2, 3)", [], "item:iw item[2:#12:#2]:w user:ir user[#1]:r"),
    ("INSERT INTO item VALUES (?, 2, 3)", ["1"], "item:w user:r"),
    ("INSERT INTO note VALUES (1, 2, 3)", [], "item:ir item[2:#12:#2]:r note:iw note[#2]:w"),
    ("INSERT INTO note VALUES (NULL, 2, 3)", [], "note:iw note[#2]:w"),
    ("UPDATE note SET x = 1 WHERE no = 1", [], "note:iw note[#1]:w"),
    ("UPDATE note SET item = 1 WHERE no = 1", [], "item:r note:iw note[#1]:w"),
    ("DELETE FROM user WHERE id = 1", [], "item:w note:r user/a,b:r user/mail:r user:iw user[#1]:w"),
    ("UPDATE user SET id = 2 WHERE id = 1", [], "item:r user:iw user[#1]:w user[#2]:w"),
    ("DELETE FROM node WHERE id = 1", [], "node:w"),
    ("UPDATE node SET up = 2 WHERE id = 1", [], "node:iw node[#1]:w node[#2]:r"),
    # the schema, and what is not understood
    ("SELECT 1", [], ""),
    ("SELECT name FROM sqlite_schema", [], ""),
    ("SELECT value FROM json_each('[1]')", [], ""),
    ("PRAGMA table_info(acc)", [], ""),
    ("PRAGMA integrity_check", [], "everything"),
    ("EXPLAIN DELETE FROM acc", [], ""),
    ("SELECT * FROM sqlite_sequence", [], "everything"),
    ("SELECT * FROM pragma_table_info('acc')", [], ""),
    ("SELECT * FROM pragma_foreign_key_check", [], "everything"),
    # what the parser takes for a column, and SQLite for a table
    ("INSERT INTO acc VALUES (?, (?, 6) IN acc)", [1, 2], "acc:w"),
    ("DELETE FROM acc WHERE id = 1 AND (1, 2) IN 'acc'", [], "acc:w"),
    ("SELECT (id, 2) IN main.seen FROM acc WHERE id = 1", [], "acc:ir acc[#1]:r seen:r"),
    ("UPDATE word SET w = 'b' WHERE w = 'a'", [], "word:iw word[a]:w word[b]:w"),
    ("CREATE TABLE x (a)", [], "everything"),
    ("ANALYZE", [], "everything"),
    ("SELECT * FROM nothing", [], "everything"),
    ("SELECT a b c", [], "everything"),
]


@pytest.mark.parametrize(("text", "params", "expected"), ROWS, ids=[r[0] for r in ROWS])
def test_footprints(schema: Schema, text: str, params: Any, expected: str) -> None:
    assert told(keys(schema, text, params)) == expected
    assert told(keys(schema, text, params)) == expected  # now remembered


def test_many_rows_are_the_whole_table(schema: Schema) -> None:
    text = f"INSERT INTO acc VALUES {', '.join(f'({i}, 0)' for i in range(1000))}"
    assert told(keys(schema, text)) == "acc:w"
    assert told(keys(schema, f"SELECT * FROM acc WHERE id IN ({', '.join('?' * 500)})", list(range(500)))) == "acc:r"
    assert told(keys(schema, f"SELECT * FROM acc WHERE id IN ({', '.join(map(str, range(20_000)))})")) == "acc:r"


def test_a_key_that_is_long_or_not_plain_text_is_one_key(schema: Schema) -> None:
    for value in ("x" * 10_000, "ä ö", "\x1f\x1e", "'", ""):
        found = keys(schema, "UPDATE word SET n = 1 WHERE w = ?", [value])
        assert found is not None and len(found) == 2 and len(found[1][0]) < 100


def test_an_unsendable_text_is_no_key(schema: Schema) -> None:
    assert told(keys(schema, "UPDATE word SET n = 1 WHERE w = ?", ["\ud800"])) == "word:w"
    assert told(keys(schema, "UPDATE word SET n = 1 WHERE w = ?", ["a\0b"])) == "word:w"


@pytest.mark.parametrize(
    ("params", "why"),
    [([], "0 parameters for 1"), ([1, 2], "2 parameters for 1"), ({"id": 1}, "by position: give a list")],
)
def test_parameters_that_do_not_fit(schema: Schema, params: Any, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        keys(schema, "SELECT * FROM acc WHERE id = ?", params)


def test_names_that_do_not_fit(schema: Schema) -> None:
    with pytest.raises(BadRequest, match="the parameter :id is missing"):
        keys(schema, "SELECT * FROM acc WHERE id = :id", {"ix": 1})
    with pytest.raises(BadRequest, match="by name: give a dict"):
        keys(schema, "SELECT * FROM acc WHERE id = :id", [1])
    assert told(keys(schema, "SELECT * FROM acc WHERE id = :id", {"id": 1, "more": 2})) == "acc:ir acc[#1]:r"


def test_the_union_of_several(schema: Schema) -> None:
    a, b = keys(schema, "UPDATE acc SET bal = 1 WHERE id = 1"), keys(schema, "SELECT * FROM acc WHERE id = 2")
    c, d = keys(schema, "SELECT * FROM acc"), keys(schema, "CREATE TABLE x (a)")
    assert told(union([a, b])) == "acc:iw acc[#1]:w acc[#2]:r"
    assert told(union([a, c])) == "acc:w"
    assert told(union([b, c])) == "acc:r"
    assert union([a, d]) is None
    assert union([]) == ()
    many = [keys(schema, "UPDATE acc SET bal = 1 WHERE id = ?", [i]) for i in range(MOST_KEYS + 1)]
    assert told(union([*many, keys(schema, "SELECT * FROM log WHERE id = 1")])) == "acc:w log:r"


def test_it_is_told_in_words(schema: Schema) -> None:
    found = explain(understand("INSERT INTO item VALUES (?, 2, 3)", "sqlite"), [1], schema)
    assert (found.kind, found.schema, found.everything, found.whole) == ("insert", 7, "", {})
    assert found.keys == {
        "table item": "writes rows of",
        "table user": "reads rows of",
        "item row 2:#12:#2": "writes",
        "user row #1": "reads",
    }
    found = explain(understand("INSERT INTO word VALUES ('a', 1)", "sqlite"), [], schema)
    assert "WITHOUT ROWID" in found.whole["table word"]
    assert "changes the schema" in explain(understand("DROP TABLE acc", "sqlite"), [], schema).everything


def test_a_schema_that_cannot_be_copied_tells_nothing() -> None:
    made = sqlite3.connect(":memory:")
    made.create_function("mine", 1, lambda v: v, deterministic=True)
    made.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE INDEX i ON t (mine(a))")
    assert keys(read_sqlite(made, 1), "SELECT * FROM t WHERE id = 1") is None
