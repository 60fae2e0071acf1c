"""Connections to PostgreSQL, set up alike at every replica."""

from collections.abc import Mapping
from typing import Any, Final, cast

import psycopg
from psycopg.types.string import StrDumper, TextLoader
from sqlalchemy import URL, create_engine
from sqlalchemy.pool import NullPool
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from framework import BadRequest, Broken
from objects.sql.postgres_functions import SEARCH_PATH

Raw = psycopg.Connection[tuple[Any, ...]]

#: What would let two servers compute, read or write the same thing in different ways. Rows come in the order in which
#: one process finds them, from the first page on.
_SETTINGS: Final = {
    "search_path": SEARCH_PATH,
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "xmloption": "content",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "lc_messages": "C",
    "default_text_search_config": "pg_catalog.simple",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "session_replication_role": "origin",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
    "jit": "off",
}
_LOCK: Final = 0x0B0  # of the whole database: who writes to it
_LET_GO: Final = 5.0  # seconds until a server has noticed that a connection is gone
_LOCKS: Final = "10s"  # to wait for a stranger's lock
#: Types that psycopg reads as objects which cannot be sent: as text instead.
_AS_TEXT: Final = (
    "inet", "cidr", "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange", "int4multirange",
    "int8multirange", "nummultirange", "tsmultirange", "tstzmultirange", "datemultirange",
)  # fmt: skip


class Text(str):
    """A text that PostgreSQL must not take for anything else: 'now' would be a time of its own clock."""


def connect(url: URL, name: str, settings: Mapping[str, str]) -> Raw:
    """Broken if the server cannot be reached now; BadRequest if it will never let us in."""
    try:
        options = {**_SETTINGS, "application_name": name, **settings}
        words = " ".join(f"-c {key}={value.replace(' ', chr(92) + ' ')}" for key, value in options.items())
        arguments = {"autocommit": True, "client_encoding": "UTF8", "options": words, "connect_timeout": 10}
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            poolclass=NullPool,
            use_native_hstore=False,
            connect_args={**arguments, "prepare_threshold": 2},
        )
        made = engine.raw_connection()
    except Exception as error:
        raise _refused(url, error) from error
    raw = cast(Raw, made.driver_connection)
    made.detach()  # from the pool, which would reset it
    raw.prepared_max = 512
    raw.adapters.register_dumper(Text, StrDumper)
    for kind in _AS_TEXT:
        if psycopg.adapters.types.get(kind) is not None:
            raw.adapters.register_loader(kind, TextLoader)
    return raw


def writer(url: URL, name: str, relaxed: bool) -> Raw:
    settings = {"synchronous_commit": "off" if relaxed else "on", "lock_timeout": _LOCKS}
    return connect(url, name, {**settings, "default_transaction_read_only": "off"})


def reader(url: URL, name: str) -> Raw:
    """Broken, whatever the server says: it has let in the writer."""
    try:
        return connect(url, f"{name} reads", {"default_transaction_read_only": "on"})
    except BadRequest as error:
        raise Broken(str(error)) from error


def _refused(url: URL, error: Exception) -> Exception:
    cause = getattr(error, "orig", None) or error
    shown = url.render_as_string(hide_password=True)
    if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError | psycopg.InternalError):
        text = " ".join(str(cause).split())
        never = any(word in text for word in ("authentication failed", "does not exist", "no pg_hba.conf entry"))
        return (BadRequest if never else Broken)(f"{shown}: {text}")
    return BadRequest(f"{shown}: {cause}")


def alone(raw: Raw) -> bool:
    """Is this the only replica that writes here? A connection that was closed, or whose node was killed, holds its lock
    for some moments more."""
    free = Retrying(
        retry=retry_if_result(lambda row: row != (True,)),
        stop=stop_after_delay(_LET_GO),
        wait=wait_fixed(0.05),
        retry_error_callback=lambda _: None,
    )
    return free(lambda: raw.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()) == (True,)
