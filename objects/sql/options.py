"""What [objects.NAME.options] may say about a database."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from framework import BadRequest, Place

DEFAULT_FILE = "database.sqlite"
_POOL = (1, 64)
_LONGEST = 86400.0


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``url`` with {node} in it, or ``urls`` by node; without both a SQLite file in the directory of the replica.

    ``statement_limit``: seconds that a call may take at a replica; 0: as long as it takes.
    ``durability`` relaxed: an answer does not wait for the disk. ``pool``: connections that read. ``tools``: the
    directory of pg_dump and pg_restore, if they are not beside the server or on the PATH."""

    url: str | None = None
    urls: dict[str, str] = {}
    durability: Literal["full", "relaxed"] = "full"
    pool: int = 4
    tools: str | None = None
    statement_limit: float = 8.0  # below the 10 s that a call waits for by default: its caller hears why it was ended


def read_options(options: Mapping[str, Any]) -> Options:
    try:
        found = msgspec.convert(dict(options), Options)
    except msgspec.ValidationError as error:
        raise BadRequest(f"options: {error}") from None
    least, most = _POOL
    if not least <= found.pool <= most:
        raise BadRequest(f"options: pool = {found.pool}: from {least} to {most}")
    if not 0.0 <= found.statement_limit <= _LONGEST:
        raise BadRequest(f"options: statement_limit = {found.statement_limit:g}: from 0 (none) to {_LONGEST:g} seconds")
    if found.url is not None and found.urls:
        raise BadRequest("options: url and urls: give one of them")
    if found.url is not None:
        _checked(found.url.replace("{node}", "n1"))
    for text in found.urls.values():
        _checked(text)
    return found


def url_of(options: Options, place: Place) -> URL:
    """Of the database of one replica. A relative file is in the directory of the replica."""
    text = options.url
    if options.urls:
        text = options.urls.get(place.node)
        if text is None:
            raise BadRequest(f'options: urls has none for {place.node}: write urls.{place.node} = "..."')
    if text is None:
        return URL.create("sqlite", database=str(place.directory / DEFAULT_FILE))
    url = _checked(text.replace("{node}", place.node))
    if url.get_backend_name() == "sqlite":
        return url.set(database=str(place.directory / Path(url.database or "")))
    return url


def _checked(text: str) -> URL:
    try:
        url = make_url(text)
    except ArgumentError:
        raise BadRequest(
            f"options: url {text!r} cannot be read: write sqlite:///FILE or postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    shown = url.render_as_string(hide_password=True)
    backend = url.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise BadRequest(f"options: url {shown}: {backend} is not supported: use sqlite or postgresql")
    if backend == "sqlite" and (not url.database or url.database == ":memory:" or url.database.startswith("file:")):
        raise BadRequest(f"options: url {shown}: name a file, sqlite:///FILE: what is in memory alone does not last")
    if backend == "postgresql" and not url.database:
        raise BadRequest(f"options: url {shown}: name the database, postgresql://USER@HOST:PORT/DATABASE")
    return url
