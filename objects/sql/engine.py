"""What ``Database`` wants from SQLite and from PostgreSQL."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from framework import Recalled
from objects.sql.footprint import Schema
from objects.sql.result import Params, Result
from objects.sql.statement import Statement
from objects.sql.tokens import Dialect

Step = tuple[Statement, Params]


class Engine(Protocol):
    """One database. ``perform`` and what has to do with batches belong to one thread; the rest to any."""

    dialect: Dialect
    version: int  # of the schema, in the open batch
    known: Schema  # as committed

    def adapt(self, params: Params) -> Params:
        """As the driver gets them."""

    def open(self) -> None: ...
    def close(self) -> None: ...
    def recall(self) -> Recalled | None: ...
    def begin(self) -> None: ...
    def commit(self, entries: Sequence[bytes], head: bytes | None) -> None: ...
    def rollback(self) -> None: ...
    def provisional(self) -> AbstractContextManager[None]: ...

    @property
    def inside(self) -> bool:
        """Is this thread in what is provisional? There it reads what it has written."""

    def perform(self, steps: Sequence[Step]) -> list[Result]:
        """All or nothing, in the open batch."""

    def perform_many(self, steps: Sequence[Step]) -> Result:
        """All or nothing, and all have the same statement; ``rowcount`` is the sum."""

    def query(self, statement: Statement, params: Params) -> Result:
        """Of what is committed, and of what was done before in what is provisional."""

    def interrupt(self, thread: int) -> None:
        """End the statement that this thread performs by ``perform`` or ``query``; from another thread."""

    def glance(self, statement: Statement, params: Params) -> Result | None:
        """The same of single rows, if it takes microseconds and waits for nobody."""

    def tables(self) -> list[str]: ...
    def schema(self) -> list[str]: ...
    def digests(self) -> dict[str, str]: ...
    def fingerprint(self) -> str: ...
    def fingerprint_of_batch(self) -> str: ...
    def set_aside(self, path: Path) -> None: ...
    def get_state(self) -> Iterable[bytes]: ...
    def set_state(self, chunks: Iterable[bytes]) -> None: ...
