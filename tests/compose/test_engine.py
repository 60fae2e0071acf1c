"""docker-compose.yml on a real engine: ``make test-compose``. Several minutes, so it is no part of ``make test``.

Faults hit one container after the other while clients write. In the end every acknowledged row is there once, and all
replicas are the same: after each kind of fault, after a restart of all, and after ``down`` and ``up``.
"""

import json
import os
import re
import threading
import time
from contextlib import contextmanager

import pyarrow.parquet as pq
import pytest

from tests.compose.deployment import ROOT, Deployment, Load, connected, free_ports, no_engine

WANTED = os.environ.get("OBO_TEST_COMPOSE") == "1"
WHY = "only by make test-compose" if not WANTED else no_engine()
pytestmark = pytest.mark.skipif(bool(WHY), reason=f"no containers here: {WHY}")

NODES = ("n1", "n2", "n3")
PAUSE = 5.0  # seconds; suspect_after is 2 in examples/compose/cluster.toml
MEGABYTES = 250  # the node's image, on whatever base, must stay below


class Written:
    """All that was acknowledged by this deployment, so far."""

    def __init__(self, deployment):
        self.deployment = deployment
        self.rows = []
        self.credentials = deployment.directory / "credentials"

    @contextmanager
    def load(self):
        load = Load(self.deployment.addresses(*NODES), self.credentials)
        try:
            with load:
                yield load
        finally:  # also if the test fails: the next one judges all that was acknowledged
            self.rows += load.acknowledged
            print(f"  {len(load.acknowledged)} rows; the longest wait was {load.longest:.1f} s")

    def check(self, load=None, replicas=3):
        """Zero errors, every row once, no other, all replicas there and equal."""
        if load is not None:
            assert load.acknowledged and not load.errors, load.errors[:3]
        with connected(self.deployment.addresses(*NODES), self.credentials) as db:
            there = [row[0] for row in db.query("SELECT id FROM rows", read="linearizable").rows]
            digests = db.digests()
        assert sorted(there) == sorted(self.rows)
        assert digests.equal and not digests.missing and len(digests.replicas) == replicas


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    found = Deployment(tmp_path_factory.mktemp("clone"))
    try:
        yield found
    finally:
        found.remove()


@pytest.fixture(scope="module")
def written(deployment):
    """Of the three nodes that docker compose up --wait gives, a few seconds after it was typed."""
    began = time.monotonic()
    deployment.compose("build")
    print(f"\n  built in {time.monotonic() - began:.0f} s")
    began = time.monotonic()
    deployment.compose("up", "--wait")
    print(f"  up in {time.monotonic() - began:.0f} s")
    deployment.compose("cp", "init:/credentials", "credentials")
    made = Written(deployment)
    with connected(deployment.addresses(*NODES), made.credentials) as db:
        db.execute("CREATE TABLE rows (id BIGINT PRIMARY KEY, client INTEGER NOT NULL)")
    return made


def test_the_image_is_small_and_its_user_may_do_little(deployment, written):
    image = deployment.environment["OBO_IMAGE"]
    whole = json.loads(deployment.run("docker", "image", "inspect", image).stdout)[0]["Size"]
    print(f"\n  the image has {whole / 1e6:.0f} MB")
    assert whole < MEGABYTES * 1e6
    assert deployment.compose("exec", "n1", "id", "-u").strip() == "10001"
    for words in ("touch /x", "touch /etc/obo/x", "touch /opt/obo/x", "cat /etc/obo/n2.key", "ls /ca"):
        assert deployment.run("docker", "compose", "exec", "n1", "sh", "-c", words, ok=False).returncode != 0, words
    for words in ("which gcc", "which strip", "which pip pip3", "python3 -m pip"):
        assert deployment.run("docker", "compose", "exec", "n1", "sh", "-c", words, ok=False).returncode != 0, words


def test_obo_sql_from_outside(deployment, written):
    """Through TLS, with the token; and not without."""
    config = ("--config", "examples/compose/cluster.toml")
    done = deployment.obo("sql", "SELECT count(*) AS n FROM rows", "--csv", *config)
    assert done.stdout.splitlines() == ["n", "0"]
    assert "all that are there hold the same" in deployment.obo("sql", "check", *config).stdout
    at = ",".join(deployment.addresses(*NODES))
    naked = deployment.obo("sql", "SELECT 1", "--at", at, "--config", "none.toml", "--timeout", "3", ok=False)
    assert naked.returncode == 2 and "no node could be reached" in naked.stderr, naked.stderr
    token = deployment.directory / "credentials" / "token"
    right = token.read_text()
    token.write_text("obo_wrong\n")
    try:
        refused = deployment.obo("sql", "SELECT 1", *config, ok=False)
    finally:
        token.write_text(right)
    assert refused.returncode == 2 and "token" in refused.stderr, refused.stderr


@pytest.mark.parametrize("victim", NODES)
def test_any_container_is_killed(deployment, written, victim):
    with written.load() as load:
        load.progress()
        deployment.compose("kill", victim)
        load.progress(50)
        deployment.compose("start", victim)
        deployment.wait_well(*NODES)
        load.progress()
    written.check(load)


def test_a_process_that_crashes_is_started_again_by_the_engine(deployment, written):
    with written.load() as load:
        load.progress()
        deployment.compose("exec", "n2", "sh", "-c", "kill -9 $(cat /proc/1/task/1/children)", ok=False)
        load.progress(50)
        deployment.wait_well(*NODES)
    assert json.loads(deployment.run("docker", "inspect", deployment.container("n2")).stdout)[0]["RestartCount"] == 1
    written.check(load)


def test_one_stands_still_past_suspicion(deployment, written):
    with written.load() as load:
        load.progress()
        deployment.pause("n1")
        time.sleep(PAUSE)
        load.progress()
        deployment.compose("unpause", "n1")
        deployment.wait_well(*NODES)
        load.progress()
    written.check(load)


def test_one_is_cut_off_and_comes_back(deployment, written):
    network, container = f"{deployment.project}_nodes", deployment.container("n3")
    with written.load() as load:
        load.progress()
        deployment.run("docker", "network", "disconnect", network, container)
        time.sleep(PAUSE)
        load.progress()
        deployment.run("docker", "network", "connect", "--alias", "n3", network, container)
        deployment.wait_well(*NODES)
        load.progress()
    written.check(load)


def test_a_load_run_with_a_kill(deployment, written):
    """obo load in a container: no client sees an error."""
    deployment.environment |= {"OBO_TRACE": "/traces", "OBO_LOAD": "sql --duration 25 --timeout 60"}
    deployment.compose("--profile", "load", "build", "load")
    deployment.compose("up", "--wait")
    killed = []

    def kill():
        deployment.compose("kill", "n2")
        killed.append(time.time())

    killer = threading.Timer(18.0, kill)  # it takes some seconds until the load begins
    killer.start()
    said = deployment.compose("--profile", "load", "run", "--rm", "load", ok=False)
    ended = time.time()
    killer.join()
    print(said)
    assert killed[0] < ended and " none " in said, said  # the column of errors
    deployment.compose("up", "--wait")
    written.check()
    told = deployment.compose("--profile", "load", "run", "--rm", "--no-deps", "load", "cat /runs/*/run.toml")
    assert killed[0] > float(re.search(r"^started = ([0-9.]+)", told, re.M)[1]), told
    assert killed[0] < float(re.search(r"^calls_until = ([0-9.]+)", told, re.M)[1]), told
    deployment.environment |= {"OBO_TRACE": ""}
    deployment.compose("up", "--wait")


def test_a_load_run_and_its_analysis(deployment, written):
    """On Spark in containers: the worker computes, and the report can be copied out. A violation would fail it."""
    deployment.environment |= {"OBO_TRACE": "/traces", "OBO_LOAD": "sql --rate 20 --duration 5 --timeout 60"}
    deployment.compose("--profile", "load", "--profile", "analytics", "build", "load", "spark-master")
    deployment.compose("up", "--wait")
    deployment.compose("--profile", "load", "run", "--rm", "load")
    began = time.monotonic()
    said = deployment.compose("--profile", "analytics", "run", "--rm", "analyze")
    print(f"\n  analysed in {time.monotonic() - began:.0f} s, with the start of Spark\n{said}")
    assert "no violation found" in said and "report: /runs/" in said, said
    assert "Asked to launch executor" in deployment.compose("--profile", "analytics", "logs", "spark-worker")
    deployment.compose("--profile", "analytics", "cp", "spark-worker:/runs", "runs")
    run = max((deployment.directory / "runs").iterdir())
    assert (run / "analysis" / "report.html").read_text().startswith("<!doctype html>")
    recorded = pq.read_table(run / "clients", columns=["phase"]).column("phase").to_pylist().count("run")
    counted = sum(pq.read_table(run / "analysis" / "tables" / "calls", columns=["calls"]).column("calls").to_pylist())
    assert recorded == counted > 0
    deployment.compose("--profile", "analytics", "rm", "--stop", "--force", "spark-master", "spark-worker")
    deployment.environment |= {"OBO_TRACE": ""}
    deployment.compose("up", "--wait")


def test_all_stop_in_time_and_start_again(deployment, written):
    began = time.monotonic()
    deployment.compose("stop")
    assert time.monotonic() - began < 25  # SIGTERM is heard: nobody waited for the grace period of 30 s
    for name in NODES:
        state = json.loads(deployment.run("docker", "inspect", deployment.container(name)).stdout)[0]["State"]
        assert state["ExitCode"] == 0, (name, state)
    deployment.compose("up", "--wait")
    written.check()


def test_all_are_killed_and_start_again(deployment, written):
    with written.load() as load:
        load.progress()
    deployment.compose("kill")
    deployment.compose("up", "--wait")
    written.check()
    with written.load() as load:
        load.progress()
    written.check(load)


def test_down_and_up_with_volumes(deployment, written):
    deployment.compose("down")
    deployment.compose("up", "--wait")
    written.check()


def test_a_roll_and_a_fourth_replica_while_clients_write(deployment, written):
    config = ("--config", "examples/compose/cluster.toml")
    with written.load() as load:
        load.progress()
        deployment.obo("compose", "roll", *config)
        done = deployment.obo("compose", "add", "n4", *config)
        load.progress()
    assert done.stdout.splitlines()[-1] == "n4: well"
    written.check(load, replicas=4)
    deployment.compose("down")
    deployment.compose("up", "--wait")  # .env starts the fourth, too
    written.check(replicas=4)


def test_a_node_is_taken_out_for_good(deployment, written):
    """As docs/operations.md says it."""
    deployment.compose("down")
    toml, env = deployment.directory / "examples" / "compose" / "cluster.toml", deployment.directory / ".env"
    toml.write_text("".join(line for line in toml.read_text().splitlines(True) if not line.startswith("n4 =")))
    env.write_text(env.read_text().replace("COMPOSE_PROFILES=four", "COMPOSE_PROFILES="))
    deployment.compose("up", "--wait")
    written.check()
    with written.load() as load:
        load.progress()
    written.check(load)


def test_new_certificates_and_a_new_token(deployment, written):
    with written.load() as load:
        load.progress()
        done = deployment.obo("compose", "roll", "--config", "examples/compose/cluster.toml", "--renew")
        load.progress()
    assert "new certificates for n1, n2, n3 and for clients (you asked for it)" in done.stdout
    written.check(load)
    words = ("token", "new", "--name", "ann", "--role", "read-only", "--tokens", "/ca/tokens.toml")
    token = deployment.compose("run", "--rm", "--no-deps", "init", *words).strip()
    deployment.compose("run", "--rm", "--no-deps", "init")
    (written.credentials / "token").rename(written.credentials / "token.old")
    (written.credentials / "token").write_text(token)
    try:
        config = ("--config", "examples/compose/cluster.toml")
        assert "db" in deployment.obo("ls", *config).stdout
        refused = deployment.obo("sql", "DELETE FROM rows", *config, ok=False)
    finally:
        (written.credentials / "token.old").rename(written.credentials / "token")
    assert refused.returncode and "read-only" in refused.stderr, refused.stderr
    written.check()


def test_a_volume_is_lost(deployment, written):
    """The node gets its state from the others, as a new one does."""
    with written.load() as load:
        load.progress()
        deployment.compose("rm", "--stop", "--force", "n2")
        deployment.run("docker", "volume", "rm", f"{deployment.project}_n2-data")
        load.progress()
        deployment.compose("up", "--wait", "n2")
        load.progress()
    written.check(load)


def test_the_demo(deployment, written):
    said = deployment.compose("--profile", "demo", "run", "--rm", "demo")
    assert said.splitlines()[-1] == "All of it holds.", said


SHOP = """
from framework import Object, method

class Shop(Object):
    durable = True

    def __init__(self) -> None:
        self.sold = 0

    @method
    def sell(self, count: int) -> int:
        self.sold += count
        return self.sold
"""


def test_objects_of_the_user(deployment, written, tmp_path):
    """obo compose writes a file for them; a node is added to it; and all come back after down and up."""
    ports = free_ports(3)
    nodes = "".join(f'n{i} = "127.0.0.1:{port}"\n' for i, port in enumerate(ports, 1))
    (tmp_path / "cluster.toml").write_text(f'[nodes]\n{nodes}[objects.shop]\nclass = "shop:Shop"\n')
    (tmp_path / "shop.py").write_text(SHOP)
    own = Deployment(tmp_path, clone=False)
    own.environment |= {"PYTHONPATH": f"{ROOT}:{tmp_path}", "OBO_CREDENTIALS": "credentials"}
    try:
        own.obo("compose", "--app", ".", "--image", deployment.environment["OBO_IMAGE"])
        own.compose("up", "--wait")
        own.compose("cp", "init:/credentials", "credentials")
        assert own.obo("call", "shop", "sell", "3").stdout == "3\n"
        assert own.obo("compose", "add", "n4").stdout.splitlines()[-1] == "n4: well"
        assert own.obo("call", "shop", "sell", "4").stdout == "7\n"
        assert "shop@n4" in own.obo("describe", "shop").stdout
        own.compose("down")
        own.compose("up", "--wait")
        assert own.obo("call", "shop", "sell", "1").stdout == "8\n"
    finally:
        own.remove()


def test_nodes_on_postgresql(deployment):
    """With a stand-in for the server's image, because not every machine can pull one."""
    image = deployment.environment["POSTGRES_IMAGE"]
    base = deployment.environment.get("BASE", "python:3.11-slim")
    place = str(ROOT / "tests" / "compose" / "postgres")
    deployment.run("docker", "build", "--tag", image, "--build-arg", f"BASE={base}", place)
    deployment.compose("--profile", "postgres", "up", "--wait", "p1", "p2", "p3")
    deployment.compose("--profile", "postgres", "cp", "p-init:/credentials", "credentials-postgres")
    where, credentials = deployment.addresses("p1", "p2", "p3"), deployment.directory / "credentials-postgres"
    with connected(where, credentials) as db:
        db.execute("CREATE TABLE rows (id BIGINT PRIMARY KEY, client INTEGER NOT NULL)")
    with Load(where, credentials) as load:
        load.progress()
        deployment.compose("--profile", "postgres", "kill", "p2", "p2-server")
        load.progress(50)
        deployment.compose("--profile", "postgres", "start", "p2-server")
        deployment.wait_well("p2-server")
        deployment.compose("--profile", "postgres", "start", "p2")
        deployment.wait_well("p1", "p2", "p3")
        load.progress()
    assert load.acknowledged and not load.errors, load.errors[:3]
    with connected(where, credentials) as db:
        there = [row[0] for row in db.query("SELECT id FROM rows", read="linearizable").rows]
        digests = db.digests()
    assert sorted(there) == sorted(load.acknowledged)
    assert digests.equal and not digests.missing
