"""A real standalone master with two workers on loopback: ``obo analyze --master spark://…``, and spark-submit with a
wheel.

Takes a minute, most of it JVMs that start; so it runs only where it is asked for: OBO_TEST_CLUSTER=1.
"""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from .small import three_calls
from .universe import write

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not os.environ.get("OBO_TEST_CLUSTER"), reason="set OBO_TEST_CLUSTER=1: takes a minute")


def environment():
    from framework.analytics import java

    return os.environ | {
        "JAVA_HOME": str(java.needed().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }


def spark_home():
    import pyspark

    return Path(pyspark.__file__).parent


@contextmanager
def running(log, *words):
    """A daemon of Spark; ended with the block."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [spark_home() / "bin" / "spark-class", *words], stdout=sink, stderr=sink, env=environment()
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(log, pattern, seconds=180):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found
        time.sleep(0.5)
    raise AssertionError(f"{pattern} is not in {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    base = tmp_path_factory.mktemp("cluster")
    words = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with running(base / "master.log", *words):
        url = until(base / "master.log", r"Starting Spark master at (spark://\S+)")[1]
        worker = (
            "org.apache.spark.deploy.worker.Worker",
            "--host",
            "127.0.0.1",
            "--cores",
            "1",
            "--memory",
            "700m",
            "--webui-port",
            "0",
        )
        with (
            running(base / "w1.log", *worker, "--work-dir", str(base / "w1"), url),
            running(base / "w2.log", *worker, "--work-dir", str(base / "w2"), url),
        ):
            for name in ("w1.log", "w2.log"):
                until(base / name, "Successfully registered with master")
            yield url


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run"
    write(path, {"": three_calls()})
    return path


def test_analyze_on_a_cluster(master, run, tmp_path):
    words = [
        sys.executable,
        "-m",
        "framework.cli.main",
        "analyze",
        str(run),
        "--master",
        master,
        "--out",
        str(tmp_path / "out"),
        "--memory",
        "600m",
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False, env=environment())
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    assert "no violation found" in done.stdout
    assert (tmp_path / "out" / "report.html").stat().st_size > 20_000


def test_spark_submit_with_a_wheel(master, run, tmp_path):
    wheel = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(wheel, check=True, timeout=300, capture_output=True)
    (built,) = tmp_path.glob("obo-*.whl")
    words = [
        spark_home() / "bin" / "spark-submit",
        "--master",
        master,
        "--conf",
        "spark.driver.host=127.0.0.1",
        "--conf",
        "spark.driver.bindAddress=127.0.0.1",
        "--executor-memory",
        "512m",
        "--executor-cores",
        "1",
        "--py-files",
        built,
        ROOT / "framework" / "analytics" / "submit.py",
        run,
        "--out",
        tmp_path / "out",
    ]
    done = subprocess.run(
        list(map(str, words)), cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False, env=environment()
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "out" / "report.html").stat().st_size > 20_000
    assert not (tmp_path / "out").joinpath("tables", "violations").joinpath("_temporary").exists()
