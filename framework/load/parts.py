"""Parquet files of a run directory: rotated, compressed, and whole or not there at all.

A part is written under another name and gets its own when it is complete, because a Parquet file without its end cannot
be read.
"""

from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 200_000  # in one part
GROUP = 50_000  # rows that are compressed together


class Parts:
    """``part-00000.parquet`` and so on in a directory, from number ``first`` on."""

    def __init__(self, directory: Path, schema: pa.Schema, first: int = 0, rows: int = ROWS) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.files = 0
        self.rows = 0
        self._directory = directory
        self._schema = schema
        self._number = first
        self._most = rows
        self._writer: pq.ParquetWriter | None = None
        self._here = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, table: pa.Table) -> None:
        """More rows; a part may get a few more than its share."""
        if not table.num_rows:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path(".writing"), self._schema, compression="zstd")
        self._writer.write_table(table, row_group_size=GROUP)
        self._here += table.num_rows
        if self._here >= self._most:
            self.close()

    def close(self) -> None:
        """What was written is a part now."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        writer.close()
        self._path(".writing").rename(self._path(".parquet"))
        self.rows += self._here
        self.files += 1
        self._here = 0
        self._number += 1

    def _path(self, end: str) -> Path:
        return self._directory / f"part-{self._number:05d}{end}"
