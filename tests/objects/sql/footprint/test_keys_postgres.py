"""What a statement touches: a table of statements and footprints, for PostgreSQL."""

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from objects.sql.footprint import Schema, explain, read_postgres, touches
from objects.sql.statement import understand
from tests.objects.sql.footprint.images import disorder
from tests.objects.sql.footprint.images_postgres import Postgres
from tests.objects.sql.footprint.test_keys import told
from tests.objects.sql.footprint.world_postgres import World

SCHEMA = """
    DROP SCHEMA IF EXISTS public, other CASCADE; CREATE SCHEMA public; CREATE SCHEMA other;
    CREATE TABLE acc (id int PRIMARY KEY, bal numeric(9, 2));
    CREATE TABLE users (id serial PRIMARY KEY, mail varchar(20) UNIQUE, a int);
    CREATE TABLE item (u int REFERENCES users ON DELETE CASCADE, no bigint, t text, PRIMARY KEY (u, no));
    CREATE TABLE other.thing (id uuid PRIMARY KEY, d date UNIQUE NULLS NOT DISTINCT);
    CREATE TABLE "Big" (id char(5) PRIMARY KEY, v int GENERATED ALWAYS AS IDENTITY);
    CREATE TABLE days (d date PRIMARY KEY, b bool);
    CREATE TABLE money (n numeric(9, -2) PRIMARY KEY);
    CREATE TABLE span (id int PRIMARY KEY, r int4range, EXCLUDE USING gist (r WITH &&));
    CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
    CREATE FUNCTION code() RETURNS int STABLE LANGUAGE sql AS $$ SELECT count(*)::int FROM acc $$;
    CREATE TABLE calls (id int PRIMARY KEY, a int DEFAULT code());
    CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
    CREATE TABLE seen (id int PRIMARY KEY);
    CREATE TRIGGER seen_fired BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION fired();
    CREATE TABLE guarded (id int PRIMARY KEY);
    ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
    CREATE VIEW rich AS SELECT * FROM acc WHERE bal > 1000;
    CREATE VIEW richer AS SELECT * FROM rich JOIN users USING (id);
    CREATE VIEW coded AS SELECT code();
"""


@pytest.fixture(scope="module")
def schema(postgres: "psycopg.Connection[Any]") -> Schema:
    postgres.execute(SCHEMA)
    return read_postgres(postgres, 3)


ID = UUID(int=5)
HEX = ID.hex

ROWS = [
    ("SELECT * FROM acc WHERE id = ?", [5], "acc:ir acc[#5]:r"),
    ("SELECT * FROM public.acc a WHERE a.id = :i", {"i": 5}, "acc:ir acc[#5]:r"),
    ("SELECT * FROM acc WHERE id = ?::int AND bal > 3", [5], "acc:ir acc[#5]:r"),
    ("SELECT * FROM acc WHERE id = ?::text::int", [5], "acc:r"),
    ("SELECT * FROM acc WHERE id = ?", ["5"], "acc:r"),
    ("SELECT * FROM acc WHERE id = ?", [Decimal("5.0")], "acc:ir acc[#5]:r"),
    ("SELECT * FROM acc WHERE id = 5.5", [], "acc:r"),
    ("UPDATE acc SET bal = bal + 1 WHERE id = 5", [], "acc:iw acc[#5]:w"),
    ("UPDATE ONLY acc SET bal = 1 WHERE id IN (1, 2)", [], "acc:iw acc[#1]:w acc[#2]:w"),
    ("UPDATE acc SET bal = u.a FROM users u WHERE acc.id = 5 AND u.id = 2", [], "acc:iw acc[#5]:w users:r"),
    ("DELETE FROM acc USING users WHERE acc.id = 5", [], "acc:iw acc[#5]:w users:r"),
    ("INSERT INTO acc VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET bal = 3", [], "acc:iw acc[#1]:w"),
    ("INSERT INTO acc VALUES (1, 2) ON CONFLICT ON CONSTRAINT acc_pkey DO UPDATE SET bal = 3", [], "acc:w"),
    ("INSERT INTO acc SELECT * FROM acc ORDER BY id", [], "acc:w"),
    # sequences and unique values
    ("INSERT INTO users (mail) VALUES ('a')", [], "=users_id_seq:w users:w"),
    ("INSERT INTO users (id, mail) VALUES (DEFAULT, 'a')", [], "=users_id_seq:w users:w"),
    ("INSERT INTO users VALUES (1, 'a  ', 2)", [], "users/mail:iw users/mail[a]:w users:iw users[#1]:w"),
    ('INSERT INTO "Big" (id) VALUES (?)', ["a  "], '="Big_v_seq":w Big:iw Big[a]:w'),
    ("UPDATE users SET mail = 'b' WHERE id = 1", [], "users/mail:w users:iw users[#1]:w"),
    # foreign keys
    ("INSERT INTO item VALUES (1, 2, 'x')", [], "item:iw item[2:#12:#2]:w users:ir users[#1]:r"),
    ("DELETE FROM users WHERE id = 1", [], "item:w users/mail:r users:iw users[#1]:w"),
    # types
    ("DELETE FROM other.thing WHERE id = ?", [ID], f"other.thing/d:r other.thing:iw other.thing[<{HEX}]:w"),
    ("SELECT * FROM other.thing WHERE id = ?", [str(ID).upper()], f"other.thing:ir other.thing[<{HEX}]:r"),
    ("SELECT * FROM other.thing WHERE id = 'x'", [], "other.thing:r"),
    ("SELECT * FROM days WHERE d = ?", [dt.date(2020, 1, 2)], "days:ir days[@2020-01-02]:r"),
    ("SELECT * FROM days WHERE d = ?", ["2020-01-02"], "days:r"),
    ("SELECT * FROM money WHERE n = 1", [], "money:r"),
    # views, and what cannot be told
    ("SELECT * FROM richer WHERE id = 1", [], "acc:r users:r"),
    ("UPDATE rich SET bal = 1", [], "everything"),
    ("SELECT * FROM coded", [], "everything"),
    ("SELECT code()", [], "everything"),
    ("INSERT INTO calls VALUES (1)", [], "everything"),
    ("SELECT * FROM calls WHERE id = 1", [], "calls:ir calls[#1]:r"),
    ("INSERT INTO seen VALUES (1)", [], "everything"),
    ("SELECT * FROM guarded", [], "everything"),
    ("INSERT INTO parts VALUES (1)", [], "everything"),
    ("INSERT INTO span VALUES (1, NULL)", [], "span:w"),
    ("WITH x AS (SELECT * FROM acc) SELECT * FROM x", [], "acc:r"),
    ("WITH x AS (DELETE FROM acc RETURNING *) SELECT * FROM x", [], "everything"),
    ("TRUNCATE acc", [], "everything"),
    ("TABLE acc", [], "acc:r"),
    ("SELECT * FROM nothing", [], "everything"),
    ("SELECT * FROM big", [], "everything"),
    ("SELECT relname FROM pg_class, generate_series(1, 2)", [], ""),
    ("CREATE TABLE x (a int)", [], "everything"),
]


@pytest.mark.parametrize(("text", "params", "expected"), ROWS, ids=[r[0] for r in ROWS])
def test_footprints(schema: Schema, text: str, params: Any, expected: str) -> None:
    assert told(touches(understand(text, "postgres"), params, schema)) == expected


def test_a_table_that_the_parser_overlooks_is_read(schema: Schema) -> None:
    assert told(
        touches(understand("SELECT 1 FROM acc a JOIN LATERAL ROWS FROM (x()) y ON users", "postgres"), [], schema)
    )


def test_it_is_told_in_words(schema: Schema) -> None:
    found = explain(understand("INSERT INTO users (mail) VALUES ('a')", "postgres"), [], schema)
    assert found.keys == {"table users": "writes", "sequence users_id_seq": "writes"}
    assert "seen_fired" in explain(understand("INSERT INTO seen VALUES (1)", "postgres"), [], schema).everything


@settings(derandomize=True, deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32))
def test_compatible_statements_may_change_places(postgres_images: Postgres, seed: int) -> None:
    assert disorder(postgres_images, World(Random(seed))) == ""
