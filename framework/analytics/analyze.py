"""The whole analysis of a run: every job, in order, with what it found as Parquet tables and as rows for the report.

Only results come to the driver: aggregates, and the first of the violations.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from framework.analytics import budget, clocks, compare, groups, latency, ratio, reading, tables, verdict
from framework.analytics.at_once import at_once
from framework.analytics.judged import is_none
from framework.analytics.pieces import Note
from framework.analytics.reading import Run
from framework.analytics.session import fit
from framework.sim.oracle_views import named

MOST_ROWS = 2000  # of a table in the report; the Parquet file has all
MOST_GATHERED = 100_000  # rows of a result that are written here; more are by Spark
MOST_VIOLATIONS = 200
_A2 = "A2 significant order, and the message ratio"
Tell = Callable[[str], None]
_Value = TypeVar("_Value")


class Found(msgspec.Struct):
    """What is known of a run afterwards: for the report, and for tests."""

    name: str
    path: str
    settings: dict[str, Any] = {}
    notes: list[Note] = []
    rows: dict[str, list[dict[str, Any]]] = {}  # by table
    totals: dict[str, int] = {}  # rows of each table, all of them
    violations: dict[str, int] = {}  # by rule
    judged: bool = False  # there were traces to be judged
    whole: bool = True  # all that the run should have left is here
    seconds: bool = True  # times are seconds; the simulator's have no unit
    overtaken: int = 0
    rounds: int = 0
    undecided: int = 0
    lasted: dict[str, float] = {}  # seconds that each step of the analysis took
    start: float = 0.0
    changes: list[tuple[float, str, int]] = []  # views: when (from the start), where, which

    @property
    def unsure(self) -> int:
        """Findings that may come from records which are missing: a request that nobody seems to have sent. Nobody can
        say; obo verify refuses such files."""
        return sum(self.violations.values()) if any(note.hole for note in self.notes) else 0

    @property
    def violated(self) -> bool:
        return bool(self.violations) and not self.unsure


class _Work:
    """One run under analysis."""

    def __init__(self, spark: SparkSession, out: Path, tell: Tell) -> None:
        self.spark, self.out, self.tell = spark, out, tell
        self.found = Found("", "")
        self._began = time.monotonic()
        self._step = ""

    def step(self, name: str) -> None:
        now = time.monotonic()
        if self._step:
            self.found.lasted[self._step] = round(now - self._began, 3)
        self._step, self._began = name, now
        if name:
            self.tell(name)

    def timed(self, name: str, job: Callable[[], _Value]) -> _Value:
        """For what runs beside others."""
        began = time.monotonic()
        done = job()
        self.found.lasted[name] = round(time.monotonic() - began, 3)
        return done

    def keep(self, name: str, frame: DataFrame, most: int = MOST_ROWS) -> None:
        """Writes a result table, and takes its first rows for the report."""
        self.keep_all({name: frame}, most)

    def keep_all(self, frames: Mapping[str, DataFrame], most: int = MOST_ROWS) -> None:
        done = at_once(self.spark, {name: partial(self._written, name, frame) for name, frame in frames.items()})
        for name, (rows, total) in done.items():
            self.found.rows[name], self.found.totals[name] = rows[:most], total

    def _written(self, name: str, frame: DataFrame) -> tuple[list[dict[str, Any]], int]:
        """Small ones are written here: a job of Spark for a file of a few rows takes longer than making them, and would
        make them again."""
        path = self.out / "tables" / name
        rows = [r.asDict(recursive=True) for r in frame.limit(MOST_GATHERED + 1).collect()]
        if len(rows) <= MOST_GATHERED:
            _write_small(path, rows, frame.schema)
            return rows, len(rows)
        frame.coalesce(1).write.mode("overwrite").parquet(str(path))
        return rows, self.spark.read.parquet(str(path)).count()


def _write_small(path: Path, rows: list[dict[str, Any]], schema: StructType) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql.pandas.types import to_arrow_schema

    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, to_arrow_schema(schema)), path / "part-00000.parquet", compression="zstd")


def analyze(spark: SparkSession, path: Path, out: Path, tell: Tell = lambda _: None) -> Found:
    """Everything about the run at ``path``, tables written below ``out``."""
    work = _Work(spark, out, tell)
    work.step(f"reading {path.name}")
    run = reading.read(spark, path)
    scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=_made(out)))
    try:
        with fit(spark, run.records):
            return _analyze(work, run, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _analyze(work: _Work, run: Run, scratch: Path) -> Found:
    found, spark = work.found, work.spark
    found.name, found.path, found.settings, found.notes = run.name, str(run.path), run.settings, run.notes
    found.whole = not run.cut and not any(note.count for note in run.notes)
    found.judged = bool(run.lives)
    who = groups.find(run)
    _lives(work, run, who)
    work.step("tables: requests, instances, receipts")
    made = tables.make(spark, run, who, scratch)
    work.step("tables: histories, answers, conflicts")
    made, staged = verdict.stage(spark, made, scratch)
    work.step("clocks")
    least = {(r.a, r.b): r.least for r in clocks.delays(made, staged.answers, run.clients).collect()}
    offsets = clocks.estimate(least)
    work.found.rows["clocks"] = [msgspec.to_builtins(one) for one in offsets]
    made, staged, run = _corrected(made, staged, run, offsets)
    work.step("figures and the verdict")
    jobs: dict[str, Callable[[], Any]] = {
        "throughput and latency": partial(_speed, work, run, made, scratch),
        "where time went": partial(_budget, work, run, made, staged),
        "who waited for whom": partial(_heat, work, staged, scratch),
    }
    if found.judged:  # what takes longest comes first; the others have what it leaves of the cores
        jobs = {_A2: partial(_follow, work, run, made, staged, scratch, clocks.slack(offsets)), **jobs}
        rules = verdict.local(spark, made, staged, who)
        jobs |= {
            name: partial(_judge, work, rule, scratch / "violations" / str(n))
            for n, (name, rule) in enumerate(rules.items())
        }
    done = at_once(spark, {name: partial(work.timed, name, job) for name, job in jobs.items()})
    if found.judged:
        _violations(work, [done[name] for name in (*rules, _A2)])
    found.changes = [(at - found.start, node, view) for at, node, view in found.changes]
    work.step("")
    return found


def _lives(work: _Work, run: Run, who: groups.Lives) -> None:
    found = work.found
    rows = []
    for one in run.lives:
        life = (one.header.node, one.header.life)
        written = who.written.get(life)
        if written is None:
            rows.append({"life": named(*life), "records": 0, "missing": 0, "ended": "wrote nothing"})
            continue
        ended = {"stop": "stopped", "out": "left the group"}.get(written.last_event, "crashed, or was cut off")
        rows.append({"life": named(*life), "records": written.records, "missing": written.gaps, "ended": ended})
        if written.gaps:
            note = Note("records are missing in the middle of the trace", named(*life), written.gaps, hole=True)
            found.notes.append(note)
            found.whole = False
    found.rows["lives"] = rows
    found.start = min((w.first_at for w in who.written.values()), default=0.0)
    found.changes = list(who.changes)
    found.seconds = run.clients is not None or found.start > 1e8


def _corrected(
    made: tables.Tables, staged: verdict.Stage, run: Run, offsets: list[clocks.Offset]
) -> tuple[tables.Tables, verdict.Stage, Run]:
    """All times as the first node's clock would have shown them."""
    if not any(one.offset for one in offsets):
        return made, staged, run
    at_dest = dict.fromkeys(("arrive_at", "propose_at", "agree_at", "start_at", "end_at", "told_at"), "dest_node")
    at_dest["acted_at"] = "dest_node"
    own = dict.fromkeys(("start_at", "end_at", "told_at", "acted_at"), "node")
    made = msgspec.structs.replace(
        made,
        moves=clocks.correct(made.moves, offsets, {"sent_at": "origin", **at_dest}),
        performed=clocks.correct(made.performed, offsets, own),
        sends=clocks.correct(made.sends, offsets, {"at": "node"}),
        receipts=clocks.correct(made.receipts, offsets, {"at": "node"}),
        history=made.history and clocks.correct(made.history, offsets, {**own, "agree_at": "node"}),
    )
    answers = staged.answers.withColumn("done_node", F.regexp_extract("place", "@([^#]+)", 1))
    answers = clocks.correct(answers, offsets, {"at": "node", "done_end_at": "done_node"}).drop("done_node")
    lanes = clocks.correct(staged.lanes, offsets, dict.fromkeys(("start_at", "end_at", "agree_at"), "node"))
    clients = run.clients
    if clients is not None:
        clients = clients.withColumn("clock_", F.concat(F.lit(clocks.CLIENTS), F.col("process")))
        clients = clocks.correct(clients, offsets, dict.fromkeys(("intended", "sent", "done"), "clock_")).drop("clock_")
    others = clocks.correct(staged.elsewhere, offsets, {"sent_at": "origin"}).drop("done_end_at")
    return made, verdict.Stage(answers, others, lanes, staged.met), msgspec.structs.replace(run, clients=clients)


def _speed(work: _Work, run: Run, made: tables.Tables, scratch: Path) -> None:
    called = tables.store(work.spark, latency.calls(run, made), scratch / "calls")
    ends = called.select(F.min("due").alias("a"), F.max("done").alias("b"), F.count("*").alias("n")).first()
    start, length, number = (ends.a, ends.b - ends.a, ends.n) if ends is not None and ends.n else (0.0, 1.0, 0)
    if number:
        work.found.start = start if run.clients is not None else work.found.start
    width = _round_width(max(length, 1e-9) / 60)
    begin = work.found.start
    figures = {
        "calls": latency.by(called, ["object", "method"]).orderBy(F.desc("calls")),
        "calls_by": latency.breakdown(called).orderBy("what", F.desc("calls")),
        "over_time": latency.over_time(called, begin, width),
        "over_time_by": latency.over_time_by(called, begin, width),
        "distribution": latency.distribution(called, ["object", "method"]),
        "errors": latency.errors(called),
    }
    work.keep_all(figures)
    work.keep("stretches", compare.stretches(called), most=MOST_GATHERED)


def _round_width(width: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 1.0
    while power > width:
        power /= 10
    while power * 10 <= width:
        power *= 10
    return next(power * m for m in (1, 2, 5, 10) if power * m >= width)


def _budget(work: _Work, run: Run, made: tables.Tables, staged: verdict.Stage) -> None:
    work.keep("budget", budget.per_method(budget.parts(made, staged.answers, run.clients)))


def _heat(work: _Work, staged: verdict.Stage, scratch: Path) -> None:
    waits = tables.store(work.spark, budget.heat(staged.lanes, staged.met), scratch / "heat")
    work.keep_all({"heat": waits, "heat_methods": budget.hot_methods(waits)})


def _judge(work: _Work, rule: verdict.Rule, path: Path) -> DataFrame:
    """What a rule says, made once."""
    found = rule()
    return found if is_none(found) else tables.store(work.spark, found, path)


def _follow(
    work: _Work, run: Run, made: tables.Tables, staged: verdict.Stage, scratch: Path, slack: float
) -> DataFrame:
    found = work.found
    done = verdict.followed(work.spark, made, staged, slack, scratch, work.tell, run.clients is not None)
    found.overtaken, found.rounds, found.undecided = done.overtaken, done.rounds, done.open
    if done.share < 1.0:
        found.notes.append(
            Note(f"message ratio: {100 * done.share:.2g} % of the pairs that had to be followed, a sample", run.name)
        )
    labels = None if run.clients is None else ratio.labels(run.clients)
    work.keep_all({"ratio": ratio.shares(done.pairs, labels), "imposed": ratio.imposed(made)})
    return _judge(work, lambda: done.broken, scratch / "violations" / "A2")


def _violations(work: _Work, parts: list[DataFrame]) -> None:
    every = verdict.union(parts)
    work.keep("violations", every, MOST_VIOLATIONS)
    work.found.violations = {r.rule: r["count"] for r in every.groupBy("rule").count().collect()}
