"""Traces of a run directory, read back whole for a verdict: the same that the nodes wrote as JSON lines.

``RUN/traces/<life>/`` has ``header.json``, the first line of the trace, and the records in ``part-*.parquet``. For runs
that fit into memory; larger ones are for the Spark jobs.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from framework.analytics.columns import to_records
from framework.errors import BadTrace
from framework.trace.files import Trace, check_numbers, decode_header
from framework.trace.record import Record


def read_life(directory: Path) -> Trace:
    """BadTrace names the file and what is wrong there."""
    path = directory / "header.json"
    try:
        header = decode_header(path, path.read_bytes().rstrip(b"\n"))
    except OSError as error:
        raise BadTrace(f"{path}: {error.strerror}") from None
    records: list[Record] = []
    for part in sorted(directory.glob("part-*.parquet")):
        try:
            table = pq.read_table(part)
        except (pa.ArrowException, OSError) as error:
            raise BadTrace(f"{part}: not a Parquet file that can be read: {_first(error)}") from None
        records += to_records(table, str(part))
    check_numbers(directory, header, records)
    return Trace(header, records)


def _first(error: Exception) -> str:
    return str(error).partition("\n")[0]
