"""``obo load`` on real nodes, one of them killed, and what the analysis says about it: the whole way, once."""

import os
import signal
import subprocess
import time
import tomllib

import pyarrow.parquet as pq
import pytest

from framework.analytics.work import work
from tests.cli.run_obo import obo
from tests.load.live import PATIENCE, loading, nodes_of

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def killed(spark, tmp_path_factory):
    """(run, what was found, the page): 3 nodes, of which n3 is killed in the middle; mcast and pcast."""
    base = tmp_path_factory.mktemp("live")
    words = ["bank", "--nodes", 3, "--rate", 60, "--duration", 5, "--warmup", 0, "--conflict", "0,0.5", "--pcast", 0.3]
    with loading(base / "run", *words, "--ucast", 0) as process:
        time.sleep(1.0)
        os.kill(nodes_of(process.pid)["n3"], signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1, err
    (found,) = work(spark, [base / "run"], base / "out").runs
    return base / "run", found, (base / "out" / "report.html").read_text(encoding="utf-8")


def test_a_killed_replica_breaks_no_rule_and_is_told(killed):
    run, found, page = killed
    assert found.violations == {}
    assert found.judged
    assert obo("verify", run).returncode == 0, "obo verify says the same"
    ended = {r["life"]: r["ended"] for r in found.rows["lives"]}
    assert ended == {"n1": "stopped", "n2": "stopped", "n3": "crashed, or was cut off"}
    assert any("n3: it ended before the run did" in note.what for note in found.notes)
    assert "n3: crashed, or was cut off after" in page
    assert {view for *_, view in found.changes} == {2}
    assert page.count(">view 2</text>") == 3, "marked in the three plots over time"


def test_every_call_of_the_clients_is_counted(killed):
    run, found, _ = killed
    told = tomllib.loads((run / "run.toml").read_text())["clients"]
    assert sum(r["calls"] for r in found.rows["calls"]) == told["records"] == 300
    assert sum(r["errors"] for r in found.rows["calls"]) == sum(told["errors"].values())
    homes = {r["value"]: r["calls"] for r in found.rows["calls_by"] if r["what"] == "node"}
    assert sum(homes.values()) == 300
    late = {r["value"]: r["t"] for r in found.rows["over_time_by"] if r["what"] == "node"}
    assert late["n3"] < late["n1"], "its clients went elsewhere"


def test_the_parts_of_a_call_add_up_to_its_latency(killed):
    """Of those whose way is in the traces: not of one whose home was killed."""
    from framework.analytics.budget import PARTS

    _, found, _ = killed
    rows = [r for r in found.rows["budget"] if r["calls"] >= 30 and r["latency"]]
    assert rows
    for r in rows:
        assert sum(r[part] or 0.0 for part in PARTS) == pytest.approx(r["latency"], rel=0.01), r


def test_messages_have_the_conflict_ratio_of_their_call(killed):
    """All but those that prepared the accounts, whichever part of a pcast they belong to."""
    _, found, _ = killed
    by = {(r["conflict_ratio"], r["ucast"]): r["messages"] for r in found.rows["ratio"]}
    assert by.keys() >= {(0.0, 0.0), (0.5, 0.0)}
    assert by.get((None, None), 0) < 0.05 * sum(by.values())


def test_all_tables_are_there(killed, tmp_path):
    run, found, _ = killed
    names = {p.name for p in (run.parent / "out" / "tables").iterdir()}
    assert names == found.totals.keys()
    assert names >= {"calls", "calls_by", "over_time", "over_time_by", "budget", "heat", "ratio", "violations"}
    for name in names:
        assert pq.read_table(run.parent / "out" / "tables" / name).num_rows == found.totals[name]


def test_a_browser_shows_the_report(killed, chromium, tmp_path):
    page = killed[0].parent / "out" / "report.html"
    words = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    words += ["--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,3000"]
    picture = tmp_path / "report.png"
    told = subprocess.run(
        [*words, f"--screenshot={picture}", page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in told.stderr, told.stderr
    assert picture.stat().st_size > 50_000
