"""A run as it lies on disk, for the jobs: trace records and client records as DataFrames, headers, and what is missing.

Two layouts are read: a run directory of ``obo load`` (docs/load.md), and the ``*.jsonl`` files that nodes and
``obo sim --trace`` write (docs/trace.md). Only headers and file footers are read here; the records are Spark's.

What can be left out is left out and told (``Run.notes``): files that end in the middle, lines that are none. What would
make every number wrong is refused: no header, another version of the format, files of different runs.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from framework.analytics import schema
from framework.errors import BadTrace
from framework.trace.record import VERSION, Header


class Note(msgspec.Struct, frozen=True):
    """Something that is not there or was left out, and how much it is."""

    what: str
    where: str
    count: int = 0


class Life(msgspec.Struct):
    """The trace of one stay of a node."""

    name: str  # n1, n1.since4
    header: Header
    files: list[Path]


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


class _Version(msgspec.Struct):
    version: int


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
    settings = _settings(path / "run.toml", notes)
    lives: list[Life] = []
    count = cut = 0
    for directory in sorted(p for p in (path / "traces").glob("*") if p.is_dir()):
        header = _header(directory / "header.json", notes)
        if header is None:
            continue
        good, bad = _whole(sorted(directory.glob("*.parquet")), notes, "the records in it")
        count += len(good) + bad
        cut += bad
        lives.append(Life(directory.name, header, good))
    clients, bad = _whole(sorted((path / "clients").glob("*.parquet")), notes, "the client records in it")
    _same_run([(path / "traces" / one.name, one.header) for one in lives])
    notes += _absent(lives) + _told(settings, lives, clients)
    files = [str(f) for one in lives for f in one.files]
    if not files and not clients:
        raise BadTrace(f"{path}: no trace and no client record in this run that could be read")
    events = spark.read.schema(schema.TRACE).parquet(*files) if files else _nothing(spark)
    taken = spark.read.schema(schema.CLIENT).parquet(*map(str, clients)) if clients else None
    return Run(path.name, path, lives, _with_life(events, lives, parent=True), taken, settings, notes, cut, count)


def _json_lines(spark: SparkSession, path: Path) -> Run:
    notes: list[Note] = []
    lives = []
    cut = 0
    files = sorted(path.glob("*.jsonl"))
    for file in files:
        header = _header(file, notes)
        if header is not None:
            lives.append(Life(file.stem, header, [file]))
            if _ends_early(file):
                cut += 1
                notes.append(Note("the last line is cut off: left out", str(file), 1))
    if not lives:
        raise BadTrace(f"{path}: none of {len(files)} trace files has a header that can be read")
    _same_run([(one.files[0], one.header) for one in lives])
    notes += _absent(lives)
    lines = (
        spark.read.schema(schema.JSON_TRACE)
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", "_corrupt")
        .json([str(one.files[0]) for one in lives])
    )
    lines = _with_life(lines, lives, parent=False)
    events = schema.from_json_lines(lines.where("event is not null and i is not null and _corrupt is null"))
    return Run(path.name, path, lives, events.drop("_corrupt"), None, {}, notes, cut, len(files))


def _nothing(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], schema.TRACE)


def _with_life(events: DataFrame, lives: Sequence[Life], parent: bool) -> DataFrame:
    """Which life wrote a record is in the name of its file."""
    later = {one.name: one.header.life for one in lives if one.header.life != 1}
    if not later:
        return events.withColumn("life", F.lit(1).cast("bigint"))
    pattern = r"([^/]+)/[^/]+\.parquet$" if parent else r"([^/]+)\.jsonl$"
    name = F.regexp_extract(F.col("_metadata.file_path"), pattern, 1)
    known = F.create_map(*[F.lit(x) for pair in later.items() for x in pair])
    return events.withColumn("life", F.coalesce(F.try_element_at(known, name), F.lit(1)).cast("bigint"))


def _settings(path: Path, notes: list[Note]) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        notes.append(Note("no run.toml: settings and how the run ended are unknown (was it killed?)", str(path)))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        notes.append(Note(f"run.toml cannot be read: {error}", str(path)))
    except OSError as error:
        notes.append(Note(f"run.toml cannot be read: {error.strerror}", str(path)))
    return {}


def _header(path: Path, notes: list[Note]) -> Header | None:
    """The first line. Without it a trace is left out; another version is refused."""
    try:
        with path.open("rb") as file:
            text = file.readline(64_000_000)
    except OSError as error:
        notes.append(Note(f"no header: {error.strerror}; the trace is left out", str(path), 1))
        return None
    try:
        version = msgspec.json.decode(text, type=_Version).version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        notes.append(Note(f"not a trace header: {error}; the trace is left out", str(path), 1))
        return None
    if version != VERSION:
        raise BadTrace(f"{path}:1: trace version {version}; this obo reads version {VERSION}")
    try:
        return msgspec.json.decode(text, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        notes.append(Note(f"not a trace header: {error}; the trace is left out", str(path), 1))
        return None


def _whole(files: Sequence[Path], notes: list[Note], lost: str) -> tuple[list[Path], int]:
    """Parquet files with a footer and our columns; a file that was being written when its writer died has none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    good = []
    expected = set(schema.TRACE_FIELDS if "client" not in lost else schema.CLIENT_FIELDS)
    for file in files:
        try:
            names = set(pq.read_schema(file).names)
        except (pa.ArrowException, OSError) as error:
            text = str(error).split(". ")[0]
            notes.append(Note(f"cut off or damaged ({text}): {lost} are left out", str(file), 1))
            continue
        if names != expected:
            odd = sorted(names ^ expected)
            raise BadTrace(
                f"{file}: columns differ from this obo's ({', '.join(odd[:5])}): written by another version?"
            )
        good.append(file)
    return good, len(files) - len(good)


def _ends_early(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(0, 2)
        if file.tell() == 0:
            return True
        file.seek(-1, 2)
        return file.read(1) != b"\n"


def _same_run(headers: Sequence[tuple[Path, Header]]) -> None:
    for path, header in headers[1:]:
        first_path, first = headers[0]
        if header.objects != first.objects:
            names = {n for n in {*header.objects, *first.objects} if header.objects.get(n) != first.objects.get(n)}
            raise BadTrace(
                f"{path}: says otherwise than {first_path} about {', '.join(sorted(names))}: traces of different runs?"
            )


def _absent(lives: Sequence[Life]) -> list[Note]:
    """Members from the beginning whose trace is not here."""
    here = {(one.header.node, one.header.life) for one in lives}
    found = []
    for node in sorted({n for one in lives for n, s in _members(one.header) if s == 1}):
        if (node, 1) not in here:
            found.append(Note(f"{node} is a member, but its trace is not here", node, 1))
    return found


def _members(header: Header) -> Iterator[tuple[str, int]]:
    yield from zip(header.members, header.since or (1,) * len(header.members), strict=False)


def _told(settings: dict[str, Any], lives: Sequence[Life], clients: Sequence[Path]) -> list[Note]:
    """What the run itself says about its end."""
    found = []
    end = str(settings.get("end", settings.get("ended", settings.get("run", {}).get("ended", "complete"))))
    if settings and not re.match("complete", end):
        found.append(Note(f"the run did not end as planned: {end}", "run.toml"))
    found += [Note(str(problem), "run.toml") for problem in settings.get("problems", ())]
    if not lives:
        found.append(Note("no traces: only what clients saw can be analysed", "traces"))
    if not clients:
        found.append(Note("no client records: calls are those in the traces", "clients"))
    return found
