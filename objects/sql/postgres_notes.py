"""Notes of the framework, the version of the schema and where sequences are, in a PostgreSQL database."""

from collections.abc import Sequence

import msgspec

from framework import Recalled
from objects.sql.postgres_connect import Raw
from objects.sql.postgres_functions import MAKE

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[bytes]).decode

#: Of each sequence: how far it is; NULL if it has not begun.
_SEQUENCES = """
    SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname), pg_sequence_last_value(c.oid::regclass)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'S' AND n.nspname !~ '^pg_' ORDER BY 1"""


def make(raw: Raw) -> None:
    with raw.transaction():
        for text in MAKE:
            raw.execute(text)


def are_there(raw: Raw) -> bool:
    found = raw.execute("SELECT to_regclass('obo._obo_head') IS NOT NULL").fetchone()
    return bool(found and found[0])


def recall(raw: Raw) -> Recalled | None:
    if not are_there(raw):
        return None
    head = raw.execute("SELECT body FROM obo._obo_head").fetchone()
    if head is None:
        return None
    bodies = raw.execute("SELECT body FROM obo._obo_log ORDER BY position", binary=True)
    return Recalled(head[0], [entry for (body,) in bodies for entry in _unpack(body)])


def write(raw: Raw, position: int, entries: Sequence[bytes], head: bytes | None) -> None:
    if head is not None:
        raw.execute("DELETE FROM obo._obo_log")
        raw.execute(
            "INSERT INTO obo._obo_head VALUES (1, %s) ON CONFLICT (id) DO UPDATE SET body = excluded.body", (head,)
        )
    if entries:
        raw.execute("INSERT INTO obo._obo_log VALUES (%s, %s)", (position, _pack(entries)))


def erase(raw: Raw) -> None:
    if are_there(raw):
        raw.execute("DELETE FROM obo._obo_head")
        raw.execute("DELETE FROM obo._obo_log")


def last_position(raw: Raw) -> int:
    return int(_value(raw, "SELECT coalesce(max(position), 0) FROM obo._obo_log"))


def schema_version(raw: Raw) -> int:
    return int(_value(raw, "SELECT value FROM obo._obo_meta WHERE name = 'schema'"))


def next_schema_version(raw: Raw) -> None:
    raw.execute("UPDATE obo._obo_meta SET value = value + 1 WHERE name = 'schema'")


def _value(raw: Raw, text: str) -> int:
    found = raw.execute(text).fetchone()
    assert found is not None
    return int(found[0])


class Sequences:
    """PostgreSQL does not take back sequences. What counts is how far they were at the last commit: written down with
    it, and restored after whatever was not committed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, bool]] = {}  # the last value, and whether it was given away

    def look(self, raw: Raw) -> None:
        """As of the last commit; sequences are put back there."""
        rows = raw.execute("SELECT name, value, called FROM obo._obo_sequences").fetchall()
        self._known = {name: (value, called) for name, value, called in rows}
        now = _exactly(raw)
        for name, mark in self._known.items():
            if now.get(name, mark) != mark:
                raw.execute("SELECT setval(%s::regclass, %s, %s)", (name, *mark))

    def write(self, raw: Raw, renewed: bool) -> None:
        """Before a commit. ``renewed``: there may be new ones, or old ones may be gone."""
        if not renewed and not self._known:
            return
        found = self.marks(raw, renewed)
        for name in self._known.keys() - found.keys():
            raw.execute("DELETE FROM obo._obo_sequences WHERE name = %s", (name,))
        for name, mark in found.items():
            if self._known.get(name) != mark:
                raw.execute(
                    "INSERT INTO obo._obo_sequences VALUES (%s, %s, %s) ON CONFLICT (name) "
                    "DO UPDATE SET value = excluded.value, called = excluded.called",
                    (name, *mark),
                )
        self._known = found

    def marks(self, raw: Raw, renewed: bool) -> dict[str, tuple[int, bool]]:
        """How far they are now, in the open batch."""
        if renewed:
            return _exactly(raw)
        if not self._known:
            return {}
        moved = {name: (value, True) for name, value in raw.execute(_SEQUENCES) if value is not None}
        return self._known | moved

    def restore(self, raw: Raw, marks: dict[str, tuple[int, bool]]) -> None:
        """They are put back there."""
        for name, value in raw.execute(_SEQUENCES).fetchall() if marks else ():
            if value is not None and marks.get(name, (value, True)) != (value, True):
                raw.execute("SELECT setval(%s::regclass, %s, %s)", (name, *marks[name]))


def _exactly(raw: Raw) -> dict[str, tuple[int, bool]]:
    found: dict[str, tuple[int, bool]] = {}
    for name, _ in raw.execute(_SEQUENCES).fetchall():
        rows = raw.execute(f"SELECT last_value, is_called FROM {name}").fetchall()
        found[name] = rows[0]
    return found
