"""A short ``obo soak``: five processes under random faults, and clients that notice nothing."""

import json
from pathlib import Path

import pytest

from framework.bench.soak_clients import TOTAL, Client
from framework.bench.soak_group import MOST_CALLS, Plan, Soak, digests, grave
from framework.errors import Unavailable
from tests.cli.run_obo import obo


@pytest.mark.full
def test_clients_notice_nothing_and_the_sum_stays(tmp_path):
    done = obo("soak", "--minutes", 1, "--nodes", 5, "--seed", 7, "--trace", tmp_path, "--json", timeout=400)
    said = json.loads(done.stdout)
    assert said["problems"] == [] and done.returncode == 0, done.stderr
    assert sum(said["faults"].values()) >= 3 and said["calls"] > 0
    assert len(said["digests"]) == 5 and len(set(said["digests"].values())) == 1
    assert said["crashed"] == said["faults"]["kill"]
    assert obo("verify", tmp_path, timeout=400).returncode == 0


def test_few_nodes_are_refused():
    done = obo("soak", "--nodes", 2)
    assert done.returncode == 2 and "nodes" in done.stderr


def test_there_are_never_more_calls_than_can_be_judged():
    assert Plan(600.0).rate * 600.0 <= MOST_CALLS
    assert Plan(10.0).rate * 10.0 <= MOST_CALLS


class Nodes:
    """A cluster of which only the names count."""

    nodes = ("n1", "n2", "n3", "n4", "n5")


def test_a_minority_at_most_is_away(monkeypatch):
    monkeypatch.setattr(Soak, "_fault", lambda *_: None)
    soak = Soak(Plan(), Nodes())
    for _ in range(20):
        soak._strike()
    assert len(soak.away) == 2 and sum(soak.faults.values()) == 2


def test_the_seed_chooses_the_faults(monkeypatch):
    monkeypatch.setattr(Soak, "_fault", lambda self, kind, node, lasts: done.append((kind, node, lasts)))

    def faults(seed):
        done.clear()
        soak = Soak(Plan(seed=seed), Nodes())
        for _ in range(5):
            soak._strike()
            for thread in soak._threads:
                thread.join()
            soak.away.clear()
        return list(done)

    done = []
    assert faults(1) == faults(1) != faults(2)


class Vault:
    def __init__(self, found):
        self.found = found

    def audit(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class Orb:
    home = "n1"

    def __init__(self, found):
        self.vault = Vault(found)

    def object(self, _cls, _name):
        return self.vault


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"accounts": {"a": TOTAL - 1}}, f"audit found {TOTAL - 1}, not {TOTAL}"),
        (Unavailable("nobody"), "home n1, then n1: audit: Unavailable: nobody"),
    ],
)
def test_a_client_tells_what_is_wrong(monkeypatch, found, said):
    client = Client("client1", Orb(found), "0", 0.1)
    monkeypatch.setattr(Client, "_choose", lambda self: ("audit", self._vault.audit))
    client._one()
    assert said in client.errors[0] and client.calls == (not isinstance(found, Exception))


def test_a_replica_that_has_lost_or_repeated_a_call_is_a_problem():
    soak = Soak(Plan(), Nodes())
    client = Client("client1", Orb({}), "0", 0.1)
    client.tallied, client.unsure = 5, 1
    soak.clients = [client]
    good = {"accounts": {"a": TOTAL}, "tallies": {"client1": 5}}
    assert soak._wrong("vault@n1", good) == []
    assert soak._wrong("vault@n1", {**good, "tallies": {"client1": 6}}) == [], "nobody knows of one"
    for wrong in (4, 7):
        (said,) = soak._wrong("vault@n1", {**good, "tallies": {"client1": wrong}})
        assert said == f"vault@n1 has counted {wrong} calls of client1, which were 5"
    (said,) = soak._wrong("vault@n2", {**good, "accounts": {"a": 1}})
    assert said == f"vault@n2 has 1 on its accounts, not {TOTAL}"


def test_what_nodes_log_as_an_error_is_a_problem(tmp_path: Path):
    lines = ("10:00 n1 INFO x: fine", "10:01 n1 ERROR x: not fine", "10:02 n1 ERROR x: n1 hears only 1 of 5")
    (tmp_path / "n1.log").write_text("\n".join(lines))
    assert grave(tmp_path, ["n1"]) == ["the log of n1: 10:01 n1 ERROR x: not fine"]
    assert digests(tmp_path, ["n1"]) == {"n1": "(none)"}
