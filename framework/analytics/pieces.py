"""The files of a run on disk: headers and footers, and what is missing, cut off or of another version.

What can be left out is left out and told (``Note``): files that end in the middle, traces without a header. What would
make every number wrong is refused: another version of the format, files of different runs.
"""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from framework.analytics import schema
from framework.errors import BadTrace
from framework.trace.record import VERSION, Header

_LINE = 250  # bytes of a record as a line of JSON, on average


class Note(msgspec.Struct, frozen=True):
    """Something that is not there or was left out, and how much it is."""

    what: str
    where: str
    count: int = 0
    hole: bool = False  # nodes have written more than can be read: what is found may come from that


class Life(msgspec.Struct):
    """The trace of one stay of a node."""

    name: str  # n1, n1.since4
    header: Header
    files: list[Path]


class _Version(msgspec.Struct):
    version: int


def settings(path: Path, notes: list[Note]) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        notes.append(Note("no run.toml: settings and how the run ended are unknown (was it killed?)", str(path)))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        notes.append(Note(f"run.toml cannot be read: {error}", str(path)))
    except OSError as error:
        notes.append(Note(f"run.toml cannot be read: {error.strerror}", str(path)))
    return {}


def header(path: Path, notes: list[Note]) -> Header | None:
    """The first line. Without it a trace is left out; another version is refused."""
    try:
        with path.open("rb") as file:
            text = file.readline(64_000_000)
    except OSError as error:
        notes.append(Note(f"no header: {error.strerror}; the trace is left out", str(path), 1, hole=True))
        return None
    try:
        version = msgspec.json.decode(text, type=_Version).version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        notes.append(Note(f"not a trace header: {error}; the trace is left out", str(path), 1, hole=True))
        return None
    if version != VERSION:
        raise BadTrace(f"{path}:1: trace version {version}; this obo reads version {VERSION}")
    try:
        return msgspec.json.decode(text, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        notes.append(Note(f"not a trace header: {error}; the trace is left out", str(path), 1, hole=True))
        return None


def whole(files: Sequence[Path], notes: list[Note], lost: str) -> tuple[list[Path], int]:
    """Parquet files with a footer and our columns; a file that was being written when its writer died has none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    good = []
    trace = "client" not in lost
    expected = set(schema.TRACE_FIELDS if trace else schema.CLIENT_FIELDS)
    for file in files:
        try:
            names = set(pq.read_schema(file).names)
        except (pa.ArrowException, OSError) as error:
            text = str(error).split(". ")[0]
            notes.append(Note(f"cut off or damaged ({text}): {lost} are left out", str(file), 1, hole=trace))
            continue
        if names != expected:
            odd = sorted(names ^ expected)
            raise BadTrace(
                f"{file}: columns differ from this obo's ({', '.join(odd[:5])}): written by another version?"
            )
        good.append(file)
    return good, len(files) - len(good)


def about(files: Sequence[Path]) -> int:
    """Records in these files, as footers say; of JSON lines, as many as their size lets expect."""
    import pyarrow.parquet as pq

    return sum(
        pq.read_metadata(file).num_rows if file.suffix == ".parquet" else file.stat().st_size // _LINE for file in files
    )


class Bounds(msgspec.Struct, frozen=True):
    """Of the records of a life."""

    records: int
    last_i: int
    first_at: float
    last_at: float


def bounds(files: Sequence[Path]) -> Bounds | None:
    """As the footers of these files say, if they do: then nobody has to read the records for it."""
    import pyarrow.parquet as pq

    numbers: list[int] = []
    times: list[float] = []
    records = 0
    for file in files:
        if file.suffix != ".parquet":
            return None
        told = pq.read_metadata(file)
        records += told.num_rows
        for group in (told.row_group(n) for n in range(told.num_row_groups)):
            columns = (group.column(n) for n in range(group.num_columns))
            found = {c.path_in_schema: c.statistics for c in columns if c.path_in_schema in ("i", "at")}
            if not all(one is not None and one.has_min_max for one in found.values()) or len(found) != 2:
                return None
            numbers.append(found["i"].max)
            times += [found["at"].min, found["at"].max]
    if not records:
        return None
    return Bounds(records, max(numbers), min(times), max(times))


def client_records(directory: Path, notes: list[Note]) -> list[Path]:
    """Parts that can be read. What a killed client process was writing becomes one when ``obo load`` ends."""
    for left in sorted(directory.glob("open-*.arrows")):
        notes.append(Note("its client process was killed, and so was obo load: left out", str(left), 1))
    return whole(sorted(directory.glob("*.parquet")), notes, "the client records in it")[0]


def ends_early(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(0, 2)
        if file.tell() == 0:
            return True
        file.seek(-1, 2)
        return file.read(1) != b"\n"


def same_run(headers: Sequence[tuple[Path, Header]]) -> None:
    for path, header in headers[1:]:
        first_path, first = headers[0]
        if header.objects != first.objects:
            names = {n for n in {*header.objects, *first.objects} if header.objects.get(n) != first.objects.get(n)}
            raise BadTrace(
                f"{path}: says otherwise than {first_path} about {', '.join(sorted(names))}: traces of different runs?"
            )


def absent(lives: Sequence[Life]) -> list[Note]:
    """Members from the beginning whose trace is not here."""
    here = {(one.header.node, one.header.life) for one in lives}
    found = []
    for node in sorted({n for one in lives for n, s in _members(one.header) if s == 1}):
        if (node, 1) not in here:
            found.append(Note(f"{node} is a member, but its trace is not here", node, 1, hole=True))
    return found


def _members(header: Header) -> Iterator[tuple[str, int]]:
    yield from zip(header.members, header.since or (1,) * len(header.members), strict=False)


def told(settings: dict[str, Any], lives: Sequence[Life], clients: Sequence[Path]) -> list[Note]:
    """What the run itself says about its end."""
    found = []
    end = str(settings.get("ended", "complete"))
    if end != "complete":
        found.append(Note(f"the run did not end as planned: {end}", "run.toml"))
    found += [Note(str(problem), "run.toml") for problem in settings.get("problems", ())]
    if lost := settings.get("clients", {}).get("lost", 0):
        found.append(Note("calls that clients told of and have no record", "clients", lost))
    if not lives:
        found.append(Note("no traces: only what clients saw can be analysed", "traces"))
    if not clients:
        found.append(Note("no client records: calls are those in the traces", "clients"))
    return found
