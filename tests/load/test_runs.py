"""``obo load`` against real nodes in processes of their own: what it writes, and what it does when something fails."""

import fcntl
import os
import shutil
import signal
import time
import tomllib
from itertools import pairwise

import pyarrow.parquet as pq
import pytest

from framework.analytics.columns import to_client_records
from framework.analytics.lives import read_life
from framework.net.tokens import add
from framework.testing import cluster
from objects.bank import Bank
from tests.cli.run_obo import obo
from tests.load.live import PATIENCE, clients_of, loading, nodes_of


def said(run):
    return tomllib.loads((run / "run.toml").read_text())


def records(run):
    return [r for part in sorted((run / "clients").glob("*.parquet")) for r in to_client_records(pq.read_table(part))]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Two nodes with TLS and tokens; ``admin`` and ``caller`` are directories of credentials."""
    directory = tmp_path_factory.mktemp("bank")
    things = {"bank": Bank, "bank-n1": Bank}
    with cluster(things, 2, processes=True, tls=True, links=False, trace=directory, on={"bank-n1": ["n1"]}) as c:
        c.at = ",".join(c.addresses.values())
        c.caller = directory / "certs" / "client"
        c.admin = directory / "certs" / "admin"
        shutil.copytree(c.caller, c.admin)
        (c.admin / "token").write_text(add(directory / "certs" / "tokens.toml", "boss", "admin"))
        yield c


# a cluster of its own


@pytest.fixture(scope="module")
def own(tmp_path_factory, worker_id):
    """A run on three nodes of its own, by two processes: (directory, what it printed). Once for all workers."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "own"
    words = ["--nodes", 3, "--rate", 120, "--duration", 2, "--warmup", 0.5, "--processes", 2, "--conflict", "0,0.5"]
    with open(f"{shared}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            done = obo("load", "bank", "--out", shared, *words, "--ucast", 0.3, "--skew", 1, "--seed", 7)
            assert done.returncode == 0, done.stderr
            (shared / "printed").write_text(done.stdout)
    return shared, (shared / "printed").read_text()


def test_a_run_has_all_its_settings_and_counts(own):
    run, out = own
    told = said(run)
    assert (told["ended"], told["workload"], told["traced"]) == ("complete", "bank", True)
    assert told["settings"]["rate"] == 120
    assert told["settings"]["seed"] == 7
    assert told["settings"]["timeout"] == 10.0, "also what was not given"
    assert told["versions"].keys() >= {"obo", "python", "grpcio", "pyarrow", "os", "cpus"}
    assert told["started"] < told["finished"]
    assert told["clients"]["records"] == 300
    assert told["clients"]["lost"] == 0
    assert set(told["nodes"]) == {"n1", "n2", "n3"}
    for node in told["nodes"].values():
        assert node["records"] > 300
        assert node["drops"] == 0
    assert str(run) in out
    assert not list((run / "logs").glob("*.jsonl")), "they are in Parquet"


def test_the_records_of_clients(own):
    found = records(own[0])
    assert len(found) == 300
    assert {r.status for r in found} == {"ok"}
    assert {r.process for r in found} == {0, 1}
    assert len({r.client for r in found}) == 8
    assert len({r.invocation for r in found}) == 300
    assert {r.phase for r in found} == {"warmup", "run"}
    assert {r.conflict for r in found} == {0.0, 0.5}
    assert {(r.transmission, r.receipt) for r in found} >= {("ucast", "srec"), ("mcast", "quorum(2)")}
    assert {r.ucast for r in found} == {0.3}
    due = sorted(r.intended for r in found)
    assert max(b - a for a, b in pairwise(due)) < 0.01, "an even rate"
    assert all(r.intended <= r.done and r.sent <= r.done for r in found)
    withdrawn = [r for r in found if r.method == "withdraw"]
    assert {r.keys for r in withdrawn} == {("hot",)}
    assert 30 < len(withdrawn) < 95, "half of the second half"


def test_clients_and_traces_tell_of_the_same_calls(own):
    traces = [read_life(p.parent) for p in own[0].glob("traces/*/header.json")]
    sent = {r.invocation: r for t in traces for r in t.records if r.event == "send" and r.client}
    told: dict[object, set[str]] = {}  # by what is one request, also if it is a convoy: what clients say of its keys
    for record in records(own[0]):
        send = sent[record.invocation]
        assert (send.client, send.kind, send.transmission) == (record.client, record.kind, record.transmission)
        assert send.receipt == record.receipt
        assert send.parts[0][0] in record.object
        told.setdefault((send.node, send.dests), set()).update(record.keys)
    assert len(told) > 1
    for send in [s for s in sent.values() if (s.node, s.dests) in told]:
        assert told[send.node, send.dests] == {k for _, f in send.parts for k, _ in f.keys or ()}


def test_obo_verify_reads_a_run(own):
    done = obo("verify", own[0], "--json")
    assert done.returncode == 0, done.stderr
    assert '"violations":[]' in done.stdout


# a cluster that is there


@pytest.mark.full
def test_traces_of_nodes_elsewhere_are_asked_for(bank, tmp_path):
    run = tmp_path / "run"
    words = ["--at", bank.at, "--credentials", bank.admin, "--duration", 1, "--warmup", 0.2, "--clients", 4]
    done = obo("load", "bank", "--out", run, *words)
    assert done.returncode == 0, done.stderr
    traces = {p.parent.name: read_life(p.parent) for p in run.glob("traces/*/header.json")}
    assert set(traces) == {"n1", "n2"}
    sent = {r.invocation for t in traces.values() for r in t.records if r.event == "send"}
    found = records(run)
    assert found
    assert {r.invocation for r in found} <= sent, "clients have the name that nodes see, with that of their token"
    assert found[0].client.startswith("boss.c-")
    assert {r.node for r in found} == {"n1", "n2"}, "their homes are spread"
    assert obo("verify", run).returncode == 0


@pytest.mark.full
def test_who_may_not_read_traces_is_told_and_records_clients(bank, tmp_path):
    run = tmp_path / "run"
    words = ["--at", bank.at, "--credentials", bank.caller, "--duration", 0.5, "--warmup", 0]
    done = obo("load", "bank", "--out", run, *words)
    assert done.returncode == 0, done.stderr
    assert "only clients are recorded" in done.stderr
    assert "needs a token with the role admin; client has call" in done.stderr
    assert records(run)
    assert said(run)["traced"] is False
    assert "a run without traces" in obo("verify", run).stderr


def test_ctrl_c_ends_in_order_and_keeps_what_there_is(bank, tmp_path):
    run = tmp_path / "run"
    words = ["bank", "--at", bank.at, "--credentials", bank.admin, "--duration", 60, "--processes", 2]
    with loading(run, *words) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, err
    told = said(run)
    assert told["ended"] == "interrupted"
    assert told["clients"]["records"] == len(records(run)) > 50
    assert told["clients"]["lost"] == 0
    assert told["nodes"]["n1"]["records"] > 0
    assert "interrupted" in out
    assert obo("verify", run).returncode == 0


@pytest.mark.full
def test_a_killed_client_process_is_noticed_and_its_records_kept(bank, tmp_path):
    run = tmp_path / "run"
    words = ["bank", "--at", bank.at, "--credentials", bank.admin, "--duration", 6, "--processes", 2]
    with loading(run, *words) as process:
        victim = next(p for p in clients_of(process.pid))
        os.kill(victim, signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
    assert "was killed by signal 9" in err
    told = said(run)
    assert told["ended"].startswith("failed: client process ")
    assert len(told["clients"]["killed"]) == 1
    found = records(run)
    assert {r.process for r in found} == {0, 1}
    assert told["clients"]["records"] == len(found)
    assert not list((run / "clients").glob("open-*"))


def test_a_mistake_in_a_function_of_the_user_is_told(bank, tmp_path):
    run = tmp_path / "run"
    words = ["--at", bank.at, "--credentials", bank.caller, "--duration", 30]
    done = obo("load", "tests.load.mine:breaks", "--out", run, *words)
    assert done.returncode == 1
    assert "ZeroDivisionError: a mistake of the user" in done.stderr
    assert said(run)["ended"].startswith("failed: client process 0: ZeroDivisionError")
    assert records(run), "what came before"


# nodes in trouble


@pytest.mark.full
def test_a_pause_of_a_node_shows_in_all_calls_of_that_time(tmp_path):
    """Coordinated omission, for real: the only node stands still for a second, and all calls due then wait."""
    run = tmp_path / "run"
    words = ["counter", "--nodes", 1, "--rate", 100, "--duration", 5, "--warmup", 0, "--clients", 2]
    with loading(run, *words) as process:
        node = nodes_of(process.pid)["n1"]
        os.kill(node, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(node, signal.SIGCONT)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
    found = records(run)
    assert len(found) == 500
    assert sum(r.done - r.intended > 0.4 for r in found) > 40
    assert max(r.done - r.intended for r in found) > 0.8


def test_a_killed_node_is_told_and_its_trace_is_kept(tmp_path):
    run = tmp_path / "run"
    words = ["bank", "--nodes", 3, "--rate", 100, "--duration", 6, "--clients", 6, "--warmup", 0]
    with loading(run, *words) as process:
        os.kill(nodes_of(process.pid)["n3"], signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1, err
    told = said(run)
    assert told["ended"] == "complete"
    assert "ended before the run did" in told["nodes"]["n3"]["gone"]
    assert told["nodes"]["n3"]["records"] > 0
    assert told["nodes"]["n3"]["traces"]["n3"]["ended"] == ""
    assert "n3: it ended before the run did" in err
    done = obo("verify", run, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"crashed":1' in done.stdout


@pytest.mark.full
def test_nodes_that_do_not_trace(tmp_path):
    with cluster({"bank": Bank}, 1, processes=True, links=False, traces=False) as c:
        at = ",".join(c.addresses.values())
        done = obo("load", "bank", "--out", tmp_path / "run", "--at", at, "--duration", 0.3, "--warmup", 0)
    assert done.returncode == 0, done.stderr
    assert "the nodes write no traces, only clients are recorded" in done.stderr
    assert "n1: writes no trace" in done.stdout
    assert said(tmp_path / "run")["nodes"]["n1"]["traced"] is False


# what cannot be


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["bnak", "--nodes", "3"], "no workload 'bnak'; did you mean 'bank'"),
        (["bank"], "which cluster?"),
        (["bank", "--nodes", "3", "--at", "127.0.0.1:1"], "give one of them"),
        (["bank", "--at", "127.0.0.1:1", "--timeout", "1"], "no node could be reached"),
        (["bank", "--nodes", "1", "--payload", "5"], "bank has no place for a payload"),
        (["bank", "--nodes", "1", "--conflict", "60"], "did you mean 60%?"),
        (["bank", "--nodes", "1", "--step", "5"], "step: for fig9 alone"),
        (["fig9", "--rate", "5"], "fig9 has its own load: rate would change nothing"),
        (["fig9", "--at", "127.0.0.1:1"], "fig9 needs objects that no other cluster has"),
        (["no.such:function", "--nodes", "1"], "there is no module 'no.such'"),
        (["tests.load.mine:none", "--nodes", "1"], "has no function 'none'"),
        (["tests.load.mine:breaks", "--nodes", "1"], "which objects shall the nodes have?"),
        (["none.toml", "--nodes", "1"], "none.toml: No such file"),
        (["travel", "--nodes", "1", "--ucast", "1"], "there is nothing for ucast"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_one_line_says_what_is_wrong(words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["obo", "load", *words, "--out", str(tmp_path / "run")])
    monkeypatch.delenv("OBO_AT", raising=False)
    monkeypatch.delenv("OBO_CONFIG", raising=False)
    from framework.cli.commands import main

    with pytest.raises(SystemExit) as ended:
        main()
    err = capsys.readouterr().err
    assert ended.value.code == 2
    assert told in err
    assert err.count("\n") == 1


def test_a_cluster_without_the_objects(bank, tmp_path):
    words = ["--at", bank.at, "--credentials", bank.caller]
    done = obo("load", "counter", "--out", tmp_path / "run", *words)
    assert done.returncode == 2
    assert (
        "counter: the cluster has no object of objects.counter:Counter; it has those of objects.bank:Bank"
        in done.stderr
    )
    assert said(tmp_path / "run")["ended"].startswith("failed: counter: the cluster has no object")
