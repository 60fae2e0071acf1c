"""One run, or two to compare: analysed, and the report written. What ``obo analyze`` and ``spark-submit`` both do."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from framework.analytics.analyze import Found, Tell, analyze
from framework.analytics.compare import Difference, differences
from framework.analytics.report import html
from framework.errors import BadRequest, OboError
from framework.files import put


class AnalysisFailed(OboError):
    """Spark could not go on: no disk, no memory, a worker that is gone."""


class Analysed(msgspec.Struct):
    """What was found of each run, and what differs if there are two."""

    runs: list[Found]
    differences: list[Difference]

    @property
    def violated(self) -> bool:
        return any(one.violated for one in self.runs)

    @property
    def code(self) -> int:
        """With which the command ends: 1 for a violation, 2 for a run that cannot be judged by what can be read."""
        return 1 if self.violated else 2 if any(one.unsure for one in self.runs) else 0


def work(spark: SparkSession, paths: Sequence[Path], out: Path, tell: Tell = lambda _: None) -> Analysed:
    report = out / "report.html"
    try:
        out.mkdir(parents=True, exist_ok=True)
        report.touch()
        report.unlink()  # no page beside tables that it does not belong to, whatever happens now
    except OSError as error:
        raise BadRequest(f"--out {out}: {error.strerror}; name a directory that can be written") from None
    with explained():
        found = [
            analyze(spark, path, out if len(paths) == 1 else out / str(n), tell) for n, path in enumerate(paths, 1)
        ]
    compared = differences(found[0].rows["stretches"], found[1].rows["stretches"]) if len(found) == 2 else []
    if compared:
        _write(out / "tables" / "differences", compared)
    tell("writing the report")
    put(report, html(found, compared))
    return Analysed(found, compared)


@contextmanager
def explained() -> Iterator[None]:
    """What Spark throws as one line that says why."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise AnalysisFailed(f"Spark gave up: {reason(error)}") from error


def reason(error: Exception) -> str:
    """One line. What Java threw first says most: "No space left on device", or which file cannot be read."""
    found = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in found if line.startswith("Caused by: ")]
    if found[:1] and found[0].startswith("An error occurred while calling"):
        found = found[1:]
    told = [*found[:1], *causes[-1:]]
    return "; ".join(line.removeprefix(": ").removeprefix("Caused by: ")[:300] for line in told) or type(error).__name__


def _write(directory: Path, compared: Sequence[Difference]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    rows = [{**msgspec.to_builtins(one), "word": one.word} for one in compared]
    pq.write_table(pa.Table.from_pylist(rows), directory / "part-00000.parquet", compression="zstd")
