"""Three ``obo serve`` processes, clients of threads, traces judged by the definitions."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from framework import ALL, RemoteError, connect
from framework.sim.oracle import judge
from framework.trace.check import load
from objects.bank import Bank
from objects.counter import Counter
from tests.cli.run_obo import obo
from tests.cluster.processes import processes


def judged(run):
    verdict = judge(load(sorted(run.trace.glob("*.jsonl"))))
    assert not verdict.violations, verdict.violations
    return verdict


def test_two_clients_nested_calls_and_a_clean_end(ports, tmp_path):
    with processes(ports(3), tmp_path) as run:
        with connect(run.at("n1", "n2")) as one, connect(run.at("n3")) as two:
            assert (one.home, two.home) == ("n1", "n3")
            bank, other = one.object(Bank, "bank"), two.object(Bank, "bank")
            bank.deposit("ann", 1000)

            def spend(bank, amount):
                for _ in range(25):
                    bank.withdraw("ann", amount)
                    bank.deposit(f"shop{amount}", amount)

            with ThreadPoolExecutor(4) as threads:  # proxies are thread-safe
                for future in [threads.submit(spend, b, n) for n, b in enumerate((bank, other, bank, other), 1)]:
                    future.result(timeout=60)
            assert bank.balance("ann") == other.balance("ann") == 1000 - 25 * (1 + 2 + 3 + 4)
            counter = two.object(Counter, "counter")
            for future in [counter.increment.submit(2) for _ in range(100)]:
                future.result(timeout=60)
            counter.increment.oneway(1)
            assert counter.show() == 201
            two.object("shop").pay.with_(receipt=ALL)("ann", 50)
            assert bank.balance("ann") == 700
            with pytest.raises(RemoteError, match="RefusedError"):
                two.object("shop").pay("nobody", 50)
            assert one.object("shop").total() == 50
        run.stop()
        verdict = judged(run)
        assert verdict.ordered and verdict.delivered > 500


def test_the_home_node_is_killed_between_calls(ports, tmp_path):
    """The client goes to the next node by itself: no error, each call performed once. The node is killed while no
    call is half sent: what a killed node has sent to one replica and not to another needs membership
    (protocol.md §10.5)."""
    calls = 300
    with processes(ports(3), tmp_path) as run:
        with connect(run.at("n1", "n2", "n3")) as orb:
            counter = orb.object(Counter, "counter")  # lives on n2 and n3
            for number in range(calls):
                if number == calls // 2:
                    run.kill("n1")
                counter.increment(1)
            assert orb.home in ("n2", "n3")
            assert counter.show() == calls
            first, second = orb.crec(orb.mcast(counter.show.request()))
            assert first.value == second.value == calls
        run.stop()
        judged(run)


def test_a_node_that_stops_sends_its_clients_on(ports, tmp_path):
    with processes(ports(3), tmp_path) as run:
        with connect(run.at("n1", "n2", "n3")) as orb:
            counter = orb.object(Counter, "counter")
            counter.increment(1)
            run.nodes["n1"].send(signal.SIGTERM)
            for _ in range(100):
                counter.increment(1)
            assert run.nodes["n1"].wait() == 0
            counter.increment(1)
            assert counter.show() == 102
            assert orb.home in ("n2", "n3")
        run.stop()
        judged(run)


def test_the_commands(ports, tmp_path):
    with processes(ports(3), tmp_path) as run:
        at = ("--at", run.at("n2"))
        done = obo("call", "bank", "deposit", "ann", 5, *at)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        done = obo("call", "bank", "balance", "ann", "--config", run.config)
        assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
        done = obo("call", "bank", "withdraw", "ann", 50, *at)
        assert done.returncode == 1 and "RefusedError: ann has 5, not 50" in done.stderr
        done = obo("call", "bank", "depost", "ann", *at)
        assert done.returncode == 2 and "deposit" in done.stderr
        done = obo("ls", *at)
        assert done.returncode == 0 and "objects.counter:Counter" in done.stdout
        run.kill("n1")
        done = obo("status", "--config", run.config, "--json")
        assert done.returncode == 1, done.stderr
        told = [json.loads(line) for line in done.stdout.splitlines()]
        assert "error" in told[0] and told[1]["node"] == "n2" and told[1]["links"]["n3"]["up"]


@pytest.mark.parametrize("method", ["slow", "blocks"])
def test_a_second_sigterm_stops_at_once(ports, tmp_path, method):
    with processes(ports(3), tmp_path) as run, connect(run.at("n1"), timeout=30) as orb:
        later = getattr(orb.object("odd"), method).submit(60.0)
        read = orb.object("bank").deposit("ann", 1)  # the slow one has been sent before it
        assert read is None and not later.done()
        process = run.nodes["n1"]
        process.send(signal.SIGTERM)
        process.hears("draining")
        process.send(signal.SIGTERM)
        assert process.wait() == 0
        assert any("stopped with" in line for line in process.log)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--node", "n9"), "no node 'n9'"),
        (("--node", "n2"), "not on loopback"),
    ],
)
def test_mistakes_at_the_start(tmp_path, words, fault):
    file = tmp_path / "cluster.toml"
    file.write_text('[nodes]\nn1 = "127.0.0.1:7401"\nn2 = "0.0.0.0:7402"\n')
    done = obo("serve", "--config", file, *words)
    assert done.returncode == 2
    assert fault in done.stderr
