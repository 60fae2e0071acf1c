"""Which database an ``obo sql`` command means: the object named, or the only one there is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from framework import BadRequest, NoSuchObject
from framework.cli.describe import find
from framework.cli.where import access, addresses, reach

if TYPE_CHECKING:
    from objects.sql.client import Level, Sql

TIMEOUT = 60.0

#: A database is what can do this, also a class derived from ours.
_METHODS = {"execute", "executemany", "transaction", "query", "tables", "schema", "digest"}

Name = Annotated[
    str | None,
    typer.Option("--object", metavar="NAME", envvar="OBO_SQL", help="Which database, if there are several."),
]
Seconds = Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="For each statement.")]


@dataclass(frozen=True)
class Found:
    """A database that was found: its client, what its node tells about it, and what it takes to ask other nodes."""

    db: "Sql"
    about: Mapping[str, Any]
    access: Any

    @property
    def nodes(self) -> Mapping[str, str]:
        """Address of each node that has a replica."""
        found: Mapping[str, str] = self.about["nodes"]
        return found


@contextmanager
def database(
    name: str | None, at: str | None, config: Path, credentials: Path | None, read: "Level", timeout: float
) -> Iterator[Found]:
    from objects.sql.client import Sql, check_level

    level = check_level(read)
    if not 0 < timeout < float("inf"):
        raise BadRequest(f"--timeout {timeout:g}: more than 0 seconds, and finite")
    with reach(addresses(at, config), config, credentials, timeout) as orb:
        about = _which(orb.look("objects"), name)
        yield Found(Sql(orb, about["name"], level), about, access(config, credentials))


def _which(objects: list[dict[str, Any]], name: str | None) -> dict[str, Any]:
    if name is not None:
        about = find(objects, name)
        if not _is_database(about):
            raise BadRequest(f"{name} is a {about['class']}, no database; {_databases(objects)}")
        return about
    found = [about for about in objects if _is_database(about)]
    if not found:
        raise NoSuchObject(
            "this cluster has no database: give it one in its cluster.toml, "
            '[objects.db] with class = "objects.sql.database:Database"'
        )
    if len(found) > 1:
        raise BadRequest(f"which database? {_databases(objects)}; name it with --object NAME")
    return found[0]


def _is_database(about: Mapping[str, Any]) -> bool:
    return _METHODS.issubset(about["methods"])


def _databases(objects: list[dict[str, Any]]) -> str:
    names = [about["name"] for about in objects if _is_database(about)]
    return f"there are {', '.join(names)}" if names else "there is none"
