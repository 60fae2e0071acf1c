"""Until statements are understood (statement.py): kinds by the first word, and every footprint is everything."""

import re
from functools import lru_cache
from typing import Literal

import msgspec

from framework import BadRequest

Dialect = Literal["sqlite", "postgres"]
Kind = Literal["select", "insert", "update", "delete", "ddl", "analyze"]

_KINDS: dict[str, Kind] = {
    "select": "select", "with": "select", "values": "select", "insert": "insert", "replace": "insert",
    "update": "update", "delete": "delete", "create": "ddl", "drop": "ddl", "alter": "ddl", "reindex": "ddl",
    "analyze": "analyze",
}  # fmt: skip


class Statement(msgspec.Struct, frozen=True):
    text: str
    run: str
    kind: Kind
    writes: bool


@lru_cache(4096)
def understand(text: str, dialect: Dialect) -> Statement:
    word = (text.split(None, 1) or [""])[0].lower()
    kind = _KINDS.get(word)
    if kind is None:
        raise BadRequest(f"{text[:80]!r}: not a statement that can be replicated")
    run = text if dialect == "sqlite" else re.sub(r":([a-z]\w*)", r"%(\1)s", text.replace("%", "%%").replace("?", "%s"))
    return Statement(text, run, kind, kind != "select")
