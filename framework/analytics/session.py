"""A Spark session: found Java, quiet start, one address. The only place that starts Spark.

A session in this process needs a JVM of 600 MB and some 10 s. ``master`` is local[*] or spark://HOST:PORT.
"""

import logging
import os
import re
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from framework.analytics import java
from framework.errors import BadRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 120.0  # seconds for the first job
SMALL_RUN = 60_000  # records
PARTITION = 2_500_000  # records, of which half are in a partition when they are sent around

#: Log4j: errors only, on stderr. Spark's own start-up banner and warnings say nothing to a user of obo.
_QUIET = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n
logger.shutdown.name = org.apache.spark.util.ShutdownHookManager
logger.shutdown.level = off
"""


#: For runs of some ten thousand records: compiling plans for them takes longer than running them as they are.
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


#: Each plan is code of its own, and most of it runs for a second or two: what the second compiler of the JVM makes of
#: it comes too late, and takes a core meanwhile. So it waits until something has really run often, and looks less far.
_PATIENT = (
    "-XX:Tier4InvocationThreshold=120000 -XX:Tier4MinInvocationThreshold=16000 -XX:Tier4CompileThreshold=240000 "
    "-XX:Tier4BackEdgeThreshold=1600000 -XX:MaxInlineLevel=9 -XX:InlineSmallCode=1500 -XX:LoopUnrollLimit=10 "
    "-XX:LoopOptsCount=10"
)


def settings(master: str, memory: str, scratch: Path) -> dict[str, str]:
    """What differs from Spark's defaults, and why."""
    return {
        "spark.master": master,
        "spark.app.name": "obo analyze",
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.ui.explainMode": "simple",  # each plan is told, with all of its details, though nobody looks
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",  # few large tasks: 2 cores, not 200
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
        # no part of what is joined has to be sorted, if it is that small (and thrice as large in memory)
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "24m",
        "spark.sql.files.maxPartitionBytes": "24m",  # of three large tasks, one would have a core for itself at last
        "spark.sql.codegen.cache.maxEntries": "1000",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.shuffle.checksum.enabled": "false",  # from this machine's disk to itself
        "spark.sql.ansi.enabled": "false",  # a field that is not there is null, not the end of the job
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{scratch / 'log4j2.properties'} "
        f"-XX:+UseParallelGC {_PATIENT} -Dderby.system.home={scratch}",
    }


@contextmanager
def session(
    master: str = "local[*]", memory: str = "2g", extra: Mapping[str, str] | None = None
) -> "Iterator[SparkSession]":
    """A session that is stopped, with what it wrote to disk, when the block ends."""
    with tempfile.TemporaryDirectory(prefix="obo-spark-", ignore_cleanup_errors=True) as scratch:
        spark = start(master, memory, Path(scratch), extra)
        try:
            yield spark
        finally:
            spark.stop()


def _partitions(spark: "SparkSession", records: int) -> int:
    """Two for each core, and so many that one of them can be sorted in memory; each more is a task in every step."""
    return max(2 * spark.sparkContext.defaultParallelism, 2 * -(-records // PARTITION))


@contextmanager
def fit(spark: "SparkSession", records: int) -> Iterator[None]:
    """Spark set up for a run of about so many records; afterwards as it was."""
    change = SMALL if records < SMALL_RUN else {"spark.sql.shuffle.partitions": str(_partitions(spark, records))}
    before = {name: spark.conf.get(name, None) for name in change}
    for name, value in change.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def start(master: str, memory: str, scratch: Path, extra: Mapping[str, str] | None = None) -> "SparkSession":
    """A session of its own or, under spark-submit, the one whose JVM is there already."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise BadRequest("the analysis needs Spark: pip install 'obo[analytics]'") from None
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    _reachable(master)
    if not submitted:
        os.environ["JAVA_HOME"] = str(java.needed().home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the same for the workers, not whatever PATH has
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark warns, and may choose one that is not reachable
    (scratch / "log4j2.properties").write_text(_QUIET)
    builder = SparkSession.builder
    for name, value in {**settings(master, memory, scratch), **_cluster(master, memory), **(extra or {})}.items():
        if not (submitted and name in ("spark.master", "spark.driver.memory", "spark.driver.extraJavaOptions")):
            builder = builder.config(name, value)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    with _silenced(not submitted):
        try:
            spark = builder.getOrCreate()
            spark.sparkContext.setLogLevel("ERROR")
            _first_job(spark, memory)
        except BadRequest:
            raise
        except Exception as error:
            raise BadRequest(f"Spark does not start on {master}: {_first_line(error)}") from error
    return spark


def _reachable(master: str) -> None:
    """Spark itself would try for minutes."""
    found = re.fullmatch(r"spark://([^:,/]+):(\d+)", master)
    if found is None:
        if master.startswith("spark://") and "," not in master:
            raise BadRequest(f"{master}: write spark://HOST:PORT")
        return
    try:
        socket.create_connection((found[1], int(found[2])), timeout=10).close()
    except OSError as error:
        raise BadRequest(f"no Spark master at {found[1]}:{found[2]}: {error.strerror or error}") from None


def _cluster(master: str, memory: str) -> dict[str, str]:
    """Executors of a cluster must find the driver again, at the address that was chosen for it; each has as much memory
    as the driver."""
    if master.startswith("local") or not master:
        return {}
    here = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    return {"spark.driver.host": here, "spark.driver.bindAddress": here, "spark.executor.memory": memory}


def _first_job(spark: "SparkSession", memory: str) -> None:
    """A master whose workers are busy, or too small, would let us wait for ever."""
    timer = threading.Timer(PATIENCE, spark.sparkContext.cancelAllJobs)
    timer.start()
    try:
        spark.range(1).count()
    except Exception as error:
        if timer.is_alive():
            raise
        raise BadRequest(
            f"no worker took a job in {PATIENCE:.0f} s: are they busy, or smaller than {memory}?"
        ) from error
    finally:
        timer.cancel()


@contextmanager
def _silenced(really: bool) -> Iterator[None]:
    """The launcher and the first seconds of the JVM write to the stderr of this process before any logger is set."""
    if not really or os.environ.get("OBO_SPARK_LOG"):
        yield
        return
    saved = os.dup(2)
    with tempfile.TemporaryFile() as sink:
        os.dup2(sink.fileno(), 2)
        try:
            yield
        except BaseException as error:
            sink.seek(0)
            error.add_note(sink.read()[-2000:].decode(errors="replace"))
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
