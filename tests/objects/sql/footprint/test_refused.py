"""What is refused, why, and what to do instead; and that nothing gets past in a quote, a comment or a strange case."""

import sqlite3

import pytest

from framework import BadRequest
from objects.sql.kinds import Kind
from objects.sql.statement import LONGEST, understand
from objects.sql.tokens import Dialect

REFUSED: list[tuple[str, str]] = [
    ("", "there is no statement"),
    (" ; ;", "there is no statement"),
    ("-- only this", "there is no statement"),
    ("SELECT 1; SELECT 2", "several statements in the text: call transaction"),
    ("SELECT 1; DROP TABLE t --", "several statements"),
    ("SELECT ';' ; /* ; */ SELECT 2", "several statements"),
    ("SELECT 'a", "a quote that is not closed"),
    ("BEGIN", r"call transaction\(\["),
    ("begin immediate", r"call transaction\(\["),
    ("COMMIT", r"call transaction\(\["),
    ("Rollback", r"call transaction\(\["),
    ("SAVEPOINT a", r"call transaction\(\["),
    ("RELEASE a", r"call transaction\(\["),
    ("VACUUM", "at each replica by itself"),
    ("SET x = 1", "the configuration of the object"),
    ("CREATE TEMP TABLE x (a int)", "belongs to one connection"),
    ("CREATE TEMPORARY VIEW x AS SELECT 1", "belongs to one connection"),
    ("CREATE VIRTUAL TABLE x USING fts5(a)", "cannot be told from outside|syntax error"),
    ("CREATE EXTENSION x", "is refused"),
    ("DROP DATABASE x", "is refused"),
    ("selec 1", "syntax error near 'selec': no statement begins so"),
    ("'SELECT' 1", "syntax error near 'SELECT'"),
    ("SELECT * FROM _obo_head", "belong to the framework"),
    ('SELECT * FROM "_OBO_head"', "belong to the framework"),
    ("SELECT * FROM main . _Obo_log", "belong to the framework"),
    ("CREATE TABLE _obox (a int)", "belong to the framework"),
    ("INSERT OR ROLLBACK INTO t VALUES (1)", "takes back statements of others: use ABORT"),
    ("UPDATE OR /* */ FAIL t SET a = 1", "leaves half of a statement behind"),
    ("DELETE FROM t LIMIT 1", "LIMIT without ORDER BY"),
    ("UPDATE t SET a = 1 WHERE id IN (SELECT id FROM u LIMIT 1)", "LIMIT without ORDER BY"),
    ("UPDATE t SET a = (SELECT b FROM u ORDER BY b) LIMIT 3", "LIMIT without ORDER BY"),
    ("INSERT INTO t (SELECT * FROM u LIMIT 3)", "LIMIT without ORDER BY|must not stand in parentheses"),
    ("CREATE TABLE t (a int REFERENCES u DEFERRABLE INITIALLY DEFERRED)", "checked at a commit"),
    ("SELECT ?, :a", "by position and by name"),
    ("EXPLAIN VACUUM", "EXPLAIN is refused here"),
    ("WITH a AS (SELECT 1)", "WITH is refused without"),
]

SQLITE: list[tuple[str, str]] = [
    ("ATTACH 'x' AS y", "declare another object"),
    ("DETACH y", "declare another object"),
    ("SELECT * FROM t; ATTACH 'x' AS y", "several statements"),
    ("PRAGMA journal_mode = DELETE", "Those that only tell something are allowed"),
    ("PRAGMA user_version = 3", "Those that only tell something"),
    ("PRAGMA main.writable_schema(1)", "Those that only tell something"),
    ("PRAGMA foreign_keys(0)", "Those that only tell something"),
    ("PRAGMA wal_checkpoint", "Those that only tell something"),
    ("EXPLAIN PRAGMA foreign_keys = OFF", "EXPLAIN is refused here"),
    ("SELECT load_extension('x')", "code cannot be loaded"),
    ("SELECT last_insert_rowid()", "use RETURNING"),
    ('SELECT "Last_Insert_Rowid" ()', "use RETURNING"),
    ("INSERT INTO t VALUES (changes())", "use RETURNING"),
    ("SELECT total_changes/**/()", "use RETURNING"),
    ("INSERT INTO t VALUES (sqlite_version())", "different builds"),
    ("INSERT INTO t SELECT * FROM pragma_page_count", "different builds"),
    ("DELETE FROM sqlite_stat1", "use ANALYZE"),
    ("DROP TABLE '_obo_head'", "belong to the framework"),
    ("INSERT INTO `_obo_log` VALUES (1)", "belong to the framework"),
    ("INSERT INTO [_obo_log] VALUES (1)", "belong to the framework"),
    ("SELECT * FROM temp.x", "not shared by the replicas"),
    ("CREATE TABLE t (a UNIQUE ON CONFLICT ROLLBACK)", "takes back statements of others"),
    ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO NOTHING ON CONFLICT (a) DO NOTHING", "two ON CONFLICT clauses"),
    (
        "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = replace(a, 1, 2) ON CONFLICT ([A] COLLATE NOCASE) "
        "DO NOTHING",
        "two ON CONFLICT clauses",
    ),
    ("INSERT INTO t VALUES (1) ON CONFLICT (a, b) DO NOTHING ON CONFLICT (b, a) DO NOTHING", "two ON CONFLICT clauses"),
    ("INSERT INTO t VALUES (1) ON CONFLICT (abs(a)) DO NOTHING ON CONFLICT (abs('a')) DO NOTHING", "two ON CONFLICT"),
    ("INSERT INTO t VALUES (1) ON CONFLICT (id) DO NOTHING ON CONFLICT (oid) DO NOTHING", "two ON CONFLICT clauses"),
    (
        "CREATE TRIGGER c AFTER INSERT ON t BEGIN INSERT INTO u VALUES (1) ON CONFLICT (a) DO NOTHING ON CONFLICT (a) "
        "DO NOTHING; END",
        "two ON CONFLICT clauses",
    ),
    ("CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT RAISE(ROLLBACK, 'x'); END", "takes back statements of others"),
    ("CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT RAISE(FAIL, 'x'); END", "leaves half of a statement"),
    ("CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM u LIMIT 1; END", "LIMIT without ORDER BY"),
    ("CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM u; END; DROP TABLE t; END", "after the END"),
    ("SELECT :a(1)", "put a space between"),
    ("SELECT $a::b", "cannot read the statement from '::b'"),
    ("SELECT ?0", "counted from 1"),
    ("SELECT ?99999999999", "too large"),
    ("SELECT '\0'", "NUL"),
    (f"SELECT '{'x' * LONGEST}'", "use parameters"),
    ("COPY t FROM 'x'", "obo sql import"),
]

POSTGRES: list[tuple[str, str]] = [
    ("COPY t FROM '/etc/passwd'", "obo sql import"),
    ("LOCK TABLE t", "need no locks"),
    ("DO $$ BEGIN END $$", "cannot be told from outside"),
    ("CALL f()", "cannot be told from outside"),
    ("LISTEN x", "belongs to one connection"),
    ("PREPARE x AS SELECT 1", r"call transaction\(\["),
    ("DECLARE c CURSOR FOR SELECT 1", "belongs to one connection"),
    ("GRANT ALL ON t TO x", "at each database server"),
    ("REINDEX TABLE t", "DROP INDEX and CREATE INDEX"),
    ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE", "ON CONFLICT DO UPDATE"),
    ("EXPLAIN ANALYZE DELETE FROM t", "leave out ANALYZE"),
    ("EXPLAIN (COSTS off, VERBOSE, ANALYZE) DELETE FROM t", "EXPLAIN"),
    ("SELECT clock_timestamp()", "use now"),
    ("SELECT nextval('s')", "use RETURNING"),
    ("INSERT INTO t VALUES (pg_catalog.nextval('s'))", "use RETURNING"),
    ("SELECT setval('s', 1)", "use RETURNING"),
    ("SELECT pg_sleep(1)", "sleep in the client"),
    ("SELECT pg_advisory_lock(1)", "need no locks"),
    ("SELECT pg_try_advisory_xact_lock(1)", "need no locks"),
    ("SELECT txid_current()", "numbers its transactions"),
    ("SELECT pg_current_xact_id()", "one server"),
    ("SELECT pg_read_file('x')", "one server"),
    ("SELECT pg_terminate_backend(1)", "one server"),
    ("SELECT lo_import('x')", "bytea"),
    ("SELECT set_config('a', 'b', false)", "the configuration"),
    ("SELECT query_to_xml('DELETE FROM t', true, true, '')", "cannot be judged"),
    ("INSERT INTO t VALUES (version())", "differs from server to server"),
    ("INSERT INTO t VALUES (current_user)", "differs from server to server"),
    ("INSERT INTO t VALUES ('x'::regclass)", "differs from server to server"),
    ("INSERT INTO t SELECT oid FROM pg_class ORDER BY 1", "server"),
    ("SELECT ctid FROM t", "use a key"),
    ("DELETE FROM t WHERE xmin = 1", "use a key"),
    ("SELECT pg_catalog.now()", "leave out pg_catalog"),
    ("SELECT random(1, 6)", "server's own"),
    ("UPDATE t SET a = (SELECT b FROM u ORDER BY random() LIMIT 1)", "draw it in the client"),
    ("UPDATE t SET a = 1 WHERE random() < 0.5", "draw it in the client"),
    ("INSERT INTO t SELECT a FROM u ORDER BY random()", "draw it in the client"),
    ("INSERT INTO t VALUES ((SELECT a FROM u ORDER BY gen_random_uuid() LIMIT 1))", "draw it in the client"),
    ("DELETE FROM t WHERE random() < 0.5", "draw it in the client"),
    ("UPDATE t SET a = (SELECT array_agg(b) FROM u)", r"write array_agg\(... ORDER BY key\)"),
    ("INSERT INTO t VALUES ((SELECT string_agg(b, (',')) FROM (SELECT b FROM u ORDER BY b) x))", "write string_agg"),
    ("UPDATE t SET a = n FROM (SELECT id, row_number() OVER (PARTITION BY b) n FROM u) x", "write OVER"),
    ("UPDATE t SET a = (SELECT any_value(b) FROM u)", "use min"),
    ("INSERT INTO t SELECT * FROM u", "add ORDER BY over a key"),
    ("INSERT INTO t SELECT count(*) FROM u GROUP BY a", "add ORDER BY over a key"),
    ("INSERT INTO t SELECT count(*) OVER () FROM u", "add ORDER BY over a key"),
    ("INSERT INTO t SELECT (SELECT count(*) FROM u) FROM u", "add ORDER BY over a key"),
    ("INSERT INTO t SELECT max(a) FROM u UNION SELECT b FROM u", "add ORDER BY over a key"),
    ("INSERT INTO t SELECT public.count(a) FROM u", "add ORDER BY over a key"),
    ("CREATE FUNCTION public.count(a int) RETURNS int STABLE LANGUAGE sql AS $$ SELECT 1 $$", "choose another name"),
    ("INSERT INTO t (SELECT * FROM u ORDER BY 1)", "must not stand in parentheses"),
    ("INSERT INTO t VALUES (ARRAY(SELECT a FROM u))", r"write ARRAY\(SELECT ... ORDER BY key\)"),
    ("UPDATE t SET a = ARRAY(TABLE u)", r"write ARRAY\(SELECT ... ORDER BY key\)"),
    ("UPDATE t SET a = ARRAY ((SELECT a FROM u WHERE b > 1))", r"write ARRAY\(SELECT ... ORDER BY key\)"),
    ("CREATE FUNCTION f() RETURNS text STABLE LANGUAGE sql AS $$ SELECT string_agg(a, ',') FROM t $$", "write string"),
    ("CREATE FUNCTION f() RETURNS int STABLE LANGUAGE sql AS $$ SELECT a FROM t LIMIT 1 $$", "LIMIT without ORDER BY"),
    ("INSERT INTO t VALUES (timestamptz_in('now', 0, -1))", "use a cast"),
    ("INSERT INTO t SELECT * FROM json_to_recordset(?) AS x(at date) ORDER BY 1", "take the values out one by one"),
    ("INSERT INTO t VALUES ('(a,b,now)')", "use now"),
    ("INSERT INTO t VALUES ('now')", "use now"),
    ("INSERT INTO t VALUES (' Today 10:00')", "use now"),
    ("INSERT INTO t VALUES (E'\\x6eow')", "use now"),
    ("INSERT INTO t VALUES ('n'\n'ow')", "write it as one"),
    ("UPDATE t SET a = 1 WHERE id IN (SELECT id FROM u OFFSET 3)", "OFFSET without ORDER BY"),
    ("UPDATE t SET a = 1 WHERE id IN (SELECT id FROM u FETCH FIRST 3 ROWS ONLY)", "FETCH without ORDER BY"),
    ("UPDATE t SET a = 1 WHERE id IN (SELECT DISTINCT ON (a) id FROM u)", "DISTINCT ON"),
    ("SELECT * FROM t FOR UPDATE", "need no locks"),
    ("SELECT * INTO x FROM t", "CREATE TABLE ... AS"),
    ("CREATE UNLOGGED TABLE t (a int)", "leave out UNLOGGED"),
    ("CREATE TABLE t (a int) TABLESPACE x", "leave it out"),
    ("CREATE INDEX CONCURRENTLY i ON t (a)", "leave it out"),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1", "use a table"),
    ("ALTER TABLE t ADD COLUMN x serial", "fill it by UPDATE"),
    ("ALTER TABLE t ADD COLUMN x uuid DEFAULT gen_random_uuid()", "fill it by UPDATE"),
    ("CREATE TABLE x AS SELECT random() FROM t", "fill it by UPDATE"),
    ("ALTER SYSTEM SET x = 1", "ALTER SYSTEM is refused"),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$", "IMMUTABLE or STABLE"),
    ("CREATE FUNCTION f() RETURNS int IMMUTABLE LANGUAGE plpython3u AS $$ 1 $$", "in sql or plpgsql"),
    ("CREATE FUNCTION f() RETURNS int STABLE LANGUAGE sql AS 'SELECT 1'", r"write it as \$\$"),
    ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'x'; END $$", "cannot be judged"),
    ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); END $$", "sleep"),
    ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $x$ BEGIN NEW.a := nextval('s'); END $x$", "RETURNING"),
    ("SELECT $1", r"write \? and give a list"),
    ("SELECT U&'\\0041'", "not supported"),
    ("SELECT 1 /* /* */", "a comment is not closed"),
    ("SELECT * FROM pg_temp.x", "not shared by the replicas"),
    ("SELECT obo.now()", "not shared by the replicas"),
]

EVERY: list[tuple[Dialect, str, str]] = [
    *(("sqlite", text, why) for text, why in (*REFUSED, *SQLITE)),
    *(("postgres", text, why) for text, why in (*REFUSED, *POSTGRES)),
]  # type: ignore[list-item, unused-ignore]


@pytest.mark.parametrize(("dialect", "text", "why"), EVERY, ids=[f"{d}: {t[:60]!r}" for d, t, _ in EVERY])
def test_it_is_refused(dialect: Dialect, text: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why) as caught:
        understand(text, dialect)
    assert len(str(caught.value)) < 1000


TAKEN: list[tuple[str, Kind]] = [
    ("SELECT 1;", "select"),
    ("  /* a; b */ select ';' -- ; \n", "select"),
    ("VALUES (1), (2)", "select"),
    ("WITH x AS (SELECT 1), y AS (SELECT 2) SELECT * FROM x", "select"),
    ("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x ORDER BY 1", "insert"),
    ("WITH x (a) AS (VALUES (1)) UPDATE t SET a = 1", "update"),
    ("(SELECT 1)", "select"),
    ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING RETURNING a", "insert"),
    ("DELETE FROM t WHERE a IN (SELECT a FROM u ORDER BY b LIMIT 1)", "delete"),
    ("CREATE TABLE t (a int DEFAULT 1, b text DEFAULT CURRENT_TIMESTAMP)", "ddl"),
    ("CREATE UNIQUE INDEX i ON t (a)", "ddl"),
    ("DROP VIEW v", "ddl"),
    ("ALTER TABLE t RENAME TO u", "ddl"),
    ("ANALYZE t", "analyze"),
    ("EXPLAIN SELECT 1", "select"),
]
SQLITE_TAKEN: list[tuple[str, Kind]] = [
    ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO NOTHING ON CONFLICT (b) DO NOTHING ON CONFLICT DO NOTHING", "insert"),
    (
        "CREATE TRIGGER c AFTER INSERT ON t BEGIN INSERT INTO u VALUES (1) ON CONFLICT (a) DO NOTHING; REPLACE INTO u "
        "VALUES (1) ON CONFLICT (a) DO NOTHING; END",
        "ddl",
    ),
    ("REPLACE INTO t VALUES (1)", "insert"),
    ("INSERT OR IGNORE INTO t VALUES (random(), date('now'))", "insert"),
    ("EXPLAIN QUERY PLAN UPDATE t SET a = 1", "select"),
    ("PRAGMA main.table_info('t')", "select"),
    ("REINDEX", "ddl"),
    ("CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT CASE WHEN 1 THEN 2 END; DELETE FROM u; END;", "ddl"),
    ("SELECT [a b], `c`, \"d\", 'it''s', x'00', ?1, ?2, 0x1F, 1.5e3 FROM t", "select"),
]
POSTGRES_TAKEN: list[tuple[str, Kind]] = [
    ("TABLE t", "select"),
    ("SELECT $$ ; $$, $a$ $$ ; $a$, E'\\'', a::text, b[1:2], 'now' FROM t WHERE c @> '{}'", "select"),
    ("SELECT pg_size_pretty(pg_relation_size('t')), pg_typeof(1)", "select"),
    ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", "update"),
    ("INSERT INTO t SELECT a, random() FROM u ORDER BY a", "insert"),
    ("INSERT INTO t SELECT 1, 2", "insert"),
    ("INSERT INTO t SELECT count(*) FROM u", "insert"),
    ("INSERT INTO t (a, b) SELECT coalesce(max(a), 0) + 1, ? FROM u WHERE b > 1 ON CONFLICT DO NOTHING", "insert"),
    ("INSERT INTO t VALUES ('nowhere', 'see you tomorrow', gen_random_uuid(), now())", "insert"),
    ("UPDATE t SET a = (SELECT array_agg(b ORDER BY b) FROM u), c = (SELECT sum(b) OVER () FROM u)", "update"),
    ("UPDATE t SET a = n FROM (SELECT id, row_number() OVER (PARTITION BY b ORDER BY id) n FROM u) x", "update"),
    ("UPDATE t SET a = round(random() * 10), b = (gen_random_uuid()) WHERE id = 1", "update"),
    ("TRUNCATE t", "delete"),
    ("CREATE TYPE mood AS ENUM ('a', 'b')", "ddl"),
    ("CREATE TABLE t (id serial PRIMARY KEY, u uuid DEFAULT gen_random_uuid())", "ddl"),
    ("CREATE OR REPLACE FUNCTION f(a int) RETURNS int IMMUTABLE LANGUAGE sql AS $$ SELECT $1 + a $$", "ddl"),
    ("CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()", "ddl"),
    ("COMMENT ON TABLE t IS 'x'", "ddl"),
    ("EXPLAIN (FORMAT json) SELECT 1", "select"),
]
ALL_TAKEN: list[tuple[Dialect, str, Kind]] = [
    *(("sqlite", text, kind) for text, kind in (*TAKEN, *SQLITE_TAKEN)),
    *(("postgres", text, kind) for text, kind in (*TAKEN, *POSTGRES_TAKEN)),
]  # type: ignore[list-item, unused-ignore]


@pytest.mark.parametrize(("dialect", "text", "kind"), ALL_TAKEN, ids=[f"{d}: {t[:60]!r}" for d, t, _ in ALL_TAKEN])
def test_it_is_taken(dialect: Dialect, text: str, kind: Kind) -> None:
    found = understand(text, dialect)
    assert (found.kind, found.writes) == (kind, kind != "select")
    assert understand(text, dialect) is found


@pytest.mark.parametrize(
    ("text", "params", "run"),
    [
        ("SELECT ?, '?', a % 2, '%s' -- ?", (0,), "SELECT %s, '?', a %% 2, '%%s'"),
        ("SELECT :a, ':a', b::int, :a", ("a", "a"), "SELECT %(a)s, ':a', b::int, %(a)s"),
        ("SELECT CURRENT_TIMESTAMP, current_date", (), "SELECT obo.now(), CAST(obo.now() AS date)"),
        ("SELECT current_time (3), LOCALTIME", (), "SELECT CAST(obo.now() AS timetz(3)), CAST(obo.now() AS time)"),
        ('SELECT "current_date", t.localtime, LocalTimestamp', (),
         'SELECT "current_date", t.localtime, CAST(obo.now() AS timestamp)'),
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN a := 7 % CURRENT_DATE; END $$", (),
         "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN a := 7 %% CAST(obo.now() AS date); END$$"),
    ],
)  # fmt: skip
def test_what_postgres_gets(text: str, params: tuple[object, ...], run: str) -> None:
    found = understand(text, "postgres")
    assert (found.params, found.run) == (params, run)


def test_sqlite_gets_the_text_itself() -> None:
    found = understand(" SELECT /* it */ ?2, ? ;; -- end", "sqlite")
    assert (found.run, found.params, found.count) == ("SELECT /* it */ ?2, ?", (1, 2), 3)
    assert sqlite3.connect(":memory:").execute(found.run, [1, 2, 3]).fetchall() == [(2, 3)]


def test_a_long_statement_is_shown_short() -> None:
    with pytest.raises(BadRequest) as caught:
        understand(f"BEGIN {'x' * 5000}", "sqlite")
    assert len(str(caught.value)) < 500 and str(caught.value).endswith("...")


def test_what_is_no_text() -> None:
    with pytest.raises(BadRequest, match="a statement is a text"):
        understand(b"SELECT 1", "sqlite")  # type: ignore[arg-type]
