"""The schema ``obo`` in a PostgreSQL database: what time and chance are, and the tables of the framework.

It stands before pg_catalog in the search path, so now(), random() and the like are found here first, also in column
defaults and in triggers. They read what the request brings from two settings: ``obo.given`` has the time and a seed,
``obo.draw`` counts what was drawn. On a connection that only reads there may be none: then it is the server's own.

``timeless`` looks at a text before a cast makes a time of it (postgres_casts).

    _obo_head, _obo_log     notes of the framework, see framework/declare/backed.py
    _obo_meta               the version of the schema; part of the state
    _obo_sequences          how far sequences were at the last commit: a rollback, or a crash, does not take them back
"""

from typing import Final

from objects.sql.postgres_casts import WORD

SCHEMA: Final = "obo"
#: New tables go to the first one.
SEARCH_PATH: Final = "public, obo, pg_catalog"

_TIME = """SELECT coalesce(nullif(split_part(current_setting('obo.given', true), ' ', 1), '')::timestamptz,
    pg_catalog.now())"""
_DRAW = """SELECT md5(split_part(current_setting('obo.given'), ' ', 2) || ' ' ||
    set_config('obo.draw', (current_setting('obo.draw')::bigint + 1)::text, true))"""
_RANDOM = """SELECT CASE WHEN coalesce(current_setting('obo.given', true), '') = '' THEN pg_catalog.random()
    ELSE ('x' || left(obo.draw(), 13))::bit(52)::bigint / 4503599627370496::double precision END"""
_UUID = """SELECT CASE WHEN coalesce(current_setting('obo.given', true), '') = '' THEN pg_catalog.gen_random_uuid()
    ELSE overlay(overlay(obo.draw() placing '4' from 13 for 1) placing '8' from 17 for 1)::uuid END"""
_AGE = "SELECT pg_catalog.age(obo.now()::date::timestamp{zone}, $1)"


def _refusal(name: str, arguments: str, returns: str, remedy: str) -> str:
    return (
        f"CREATE OR REPLACE FUNCTION obo.{name}({arguments}) RETURNS {returns} LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE '{name}() differs from replica to replica: {remedy}'; END $$"
    )


def _function(name: str, arguments: str, returns: str, volatility: str, body: str) -> str:
    return (
        f"CREATE OR REPLACE FUNCTION obo.{name}({arguments}) RETURNS {returns} LANGUAGE sql {volatility} "
        f"AS $$ {body} $$"
    )


def _timeless(kind: str, text: str) -> str:
    return (
        f"CREATE OR REPLACE FUNCTION obo.timeless({kind}) RETURNS {kind} LANGUAGE plpgsql IMMUTABLE STRICT AS "
        f"$$ BEGIN IF {text} ~* '{WORD}' THEN RAISE '% is refused as a time: each server would read it from its own "
        "clock: use now()', $1 USING ERRCODE = 'invalid_datetime_format'; END IF; RETURN $1; END $$"
    )


MAKE: Final = (
    "CREATE SCHEMA IF NOT EXISTS obo",
    *(
        _function(name, "", "timestamptz", "STABLE", _TIME)
        for name in ("now", "transaction_timestamp", "statement_timestamp", "clock_timestamp")
    ),
    _function("draw", "", "text", "VOLATILE", _DRAW),
    _function("random", "", "double precision", "VOLATILE", _RANDOM),
    _function("gen_random_uuid", "", "uuid", "VOLATILE", _UUID),
    _function("age", "timestamp", "interval", "STABLE", _AGE.format(zone="")),
    _function("age", "timestamptz", "interval", "STABLE", _AGE.format(zone="tz")),
    _timeless("text", "$1"),
    _timeless("text[]", "array_to_string($1, ' ')"),
    _function("timeless", "anyelement", "anyelement", "IMMUTABLE", "SELECT $1"),
    _refusal("timeofday", "", "text", "use now()"),
    _refusal("setseed", "double precision", "void", "random() needs no seed here"),
    _refusal("random_normal", "float8 DEFAULT 0, float8 DEFAULT 1", "float8", "use random()"),
    _refusal("uuidv7", "", "uuid", "use gen_random_uuid()"),
    "CREATE TABLE IF NOT EXISTS obo._obo_head (id int PRIMARY KEY CHECK (id = 1), body bytea NOT NULL)",
    "CREATE TABLE IF NOT EXISTS obo._obo_log (position bigint PRIMARY KEY, body bytea NOT NULL)",
    "CREATE TABLE IF NOT EXISTS obo._obo_meta (name text PRIMARY KEY, value bigint NOT NULL)",
    "CREATE TABLE IF NOT EXISTS obo._obo_sequences (name text PRIMARY KEY, value bigint, called bool)",
    "INSERT INTO obo._obo_meta VALUES ('schema', 1) ON CONFLICT DO NOTHING",
)
