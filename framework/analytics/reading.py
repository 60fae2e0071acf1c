"""A run as it lies on disk, for the jobs: trace records and client records as DataFrames, headers, and what is missing.

Two layouts are read: a run directory of ``obo load`` (docs/load.md), and the ``*.jsonl`` files that nodes and
``obo sim --trace`` write (docs/trace.md). A run of ``obo load`` that was killed has both: what its nodes wrote is still
in ``logs/``. Only headers and file footers are read here (framework.analytics.pieces); the records are Spark's.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from framework.analytics import pieces, schema
from framework.analytics.pieces import Life, Note
from framework.errors import BadTrace


class Run(msgspec.Struct):
    """``events`` has the columns of a trace record and ``life``; ``clients`` is None without client records."""

    name: str
    path: Path
    lives: list[Life]
    events: Any  # DataFrame
    clients: Any  # DataFrame | None
    settings: dict[str, Any]
    notes: list[Note]
    cut: int = 0  # trace files that end in the middle
    files: int = 0

    @property
    def records(self) -> int:
        """About how many trace records there are."""
        return pieces.about([file for one in self.lives for file in one.files])


def read(spark: SparkSession, path: Path) -> Run:
    """The run at ``path``. BadTrace if there is none, or nothing of it can be used."""
    if not path.exists():
        raise BadTrace(f"{path}: no such file or directory")
    if not path.is_dir():
        raise BadTrace(f"{path}: a file; give the directory of the run")
    if (path / "traces").is_dir() or (path / "clients").is_dir() or (path / "run.toml").is_file():
        return _run_directory(spark, path)
    if next(path.glob("*.jsonl"), None) is not None:
        return _json_lines(spark, path)
    inside = sorted({p.parent.name for p in path.glob("*/*.jsonl")} | {p.parent.name for p in path.glob("*/run.toml")})
    if inside:
        raise BadTrace(
            f"{path}: holds {len(inside)} runs ({', '.join(inside[:5])}{' …' * (len(inside) > 5)}): name one or two"
        )
    raise BadTrace(f"{path}: no run: neither run.toml, traces/ nor *.jsonl in this directory")


def _run_directory(spark: SparkSession, path: Path) -> Run:
    notes: list[Note] = []
    settings = pieces.settings(path / "run.toml", notes)
    logged = sorted((path / "logs").glob("*.jsonl"))  # they are removed when they are in Parquet
    left, cut = _left_behind(logged, notes)
    lives, bad = _in_parquet(path / "traces", {one.name for one in left}, notes)
    clients = pieces.client_records(path / "clients", notes)
    both = [*lives, *left]
    named = [*(path / "traces" / one.name for one in lives), *(one.files[0] for one in left)]
    pieces.same_run([(file, one.header) for file, one in zip(named, both, strict=True)])
    notes += pieces.absent(both) + pieces.told(settings, both, clients)
    if not any(one.files for one in both) and not clients:
        raise BadTrace(f"{path}: no trace and no client record in this run that could be read")
    taken = spark.read.schema(schema.CLIENT).parquet(*map(str, clients)) if clients else None
    files = sum(len(one.files) for one in both) + bad
    return Run(path.name, path, both, _events(spark, lives, left), taken, settings, notes, cut + bad, files)


def _left_behind(files: Sequence[Path], notes: list[Note]) -> tuple[list[Life], int]:
    """JSON lines that ``obo load`` did not come to convert; and how many of them are cut off."""
    found, cut = _in_lines(files, notes)
    if found:
        notes.append(Note(f"{len(found)} traces are as the nodes left them: obo load did not end in order", "logs"))
    return found, cut


def _in_parquet(directory: Path, but: set[str], notes: list[Note]) -> tuple[list[Life], int]:
    """Lives in ``traces/``, and how many of their files cannot be read. ``but``: those that are read elsewhere."""
    lives: list[Life] = []
    bad = 0
    for one in sorted(p for p in directory.glob("*") if p.is_dir() and p.name not in but):
        header = pieces.header(one / "header.json", notes)
        if header is not None:
            good, broken = pieces.whole(sorted(one.glob("*.parquet")), notes, "the records in it")
            bad += broken
            lives.append(Life(one.name, header, good))
    return lives, bad


def _in_lines(files: Sequence[Path], notes: list[Note]) -> tuple[list[Life], int]:
    lives: list[Life] = []
    cut = 0
    for file in files:
        header = pieces.header(file, notes)
        if header is not None:
            lives.append(Life(file.stem, header, [file]))
            if pieces.ends_early(file):
                cut += 1
                notes.append(Note("the last line is cut off: left out", str(file), 1))
    return lives, cut


def _json_lines(spark: SparkSession, path: Path) -> Run:
    notes: list[Note] = []
    files = sorted(path.glob("*.jsonl"))
    lives, cut = _in_lines(files, notes)
    if not lives:
        raise BadTrace(f"{path}: none of {len(files)} trace files has a header that can be read")
    pieces.same_run([(one.files[0], one.header) for one in lives])
    notes += pieces.absent(lives)
    return Run(path.name, path, lives, _of_lines(spark, lives), None, {}, notes, cut, len(files))


def _events(spark: SparkSession, lives: Sequence[Life], left: Sequence[Life]) -> DataFrame:
    files = [str(f) for one in lives for f in one.files]
    found = [_with_life(spark.read.schema(schema.TRACE).parquet(*files), lives, parent=True)] if files else []
    found += [_of_lines(spark, left)] if left else []
    if not found:
        return _with_life(spark.createDataFrame([], schema.TRACE), [], parent=True)
    return found[0] if len(found) == 1 else found[0].unionByName(found[1])


def _of_lines(spark: SparkSession, lives: Sequence[Life]) -> DataFrame:
    lines = (
        spark.read.schema(schema.JSON_TRACE)
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", "_corrupt")
        .json([str(one.files[0]) for one in lives])
    )
    lines = _with_life(lines, lives, parent=False)
    events = schema.from_json_lines(lines.where("event is not null and i is not null and _corrupt is null"))
    return events.drop("_corrupt")


def _with_life(events: DataFrame, lives: Sequence[Life], parent: bool) -> DataFrame:
    """Which life wrote a record is in the name of its file."""
    later = {one.name: one.header.life for one in lives if one.header.life != 1}
    if not later:
        return events.withColumn("life", F.lit(1).cast("bigint"))
    pattern = r"([^/]+)/[^/]+\.parquet$" if parent else r"([^/]+)\.jsonl$"
    name = F.regexp_extract(F.col("_metadata.file_path"), pattern, 1)
    known = F.create_map(*[F.lit(x) for pair in later.items() for x in pair])
    return events.withColumn("life", F.coalesce(F.try_element_at(known, name), F.lit(1)).cast("bigint"))
