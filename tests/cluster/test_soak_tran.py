"""A short ``obo soak --transactions``: transfers between two banks on five processes that are killed with -9."""

import json
from collections import Counter

import pytest

from framework.bench.soak_tran import ACCOUNTS, BANKS, START, TOTAL, TranClient, wrong
from framework.errors import Aborted, OutcomeUnknown, RemoteError, Unavailable
from tests.cli.run_obo import obo


@pytest.mark.full
def test_the_sum_is_right_at_every_read_and_in_the_end(tmp_path):
    done = obo("soak", "--transactions", "--minutes", 0.3, "--seed", 7, "--trace", tmp_path, "--json", timeout=400)
    said = json.loads(done.stdout)
    assert said["problems"] == [] and done.returncode == 0, done.stderr
    assert said["faults"]["kill"] == said["crashed"] >= 2
    assert said["committed"] > 20 and said["reads"] > 3
    assert obo("verify", tmp_path, timeout=400).returncode == 0


def banks():
    return {bank: {node: dict.fromkeys(ACCOUNTS, START) for node in ("n1", "n2")} for bank in BANKS}


def test_money_that_is_lost_or_made_is_a_problem():
    assert list(wrong(banks(), Counter())) == []
    found = banks()
    found["south"]["n2"]["a1"] -= 1
    assert list(wrong(found, None)) == [f"the banks have {TOTAL - 1} at n2, not {TOTAL}"]
    assert f"south@n2 has {START - 1} on a1; by what was committed it is {START}" in list(wrong(found, Counter()))


def test_what_was_not_committed_but_is_there_is_a_problem():
    """The sum alone would not tell."""
    found = banks()
    for node in ("n1", "n2"):
        found["south"][node]["a1"] -= 1
        found["north"][node]["a1"] += 1
    assert len(list(wrong(found, Counter()))) == 4
    assert list(wrong(found, Counter({("south", "a1"): -1, ("north", "a1"): 1}))) == []


class Orb:
    """Ends each transaction as it is told."""

    home = "n1"

    def __init__(self, *ends):
        self.ends = list(ends)

    def object(self, _cls, _name):
        return None

    def run_transaction(self, _fn, attempts):
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


def unknown(*fates):
    error = OutcomeUnknown("nobody knows")
    told = list(fates)

    class Asked:
        def outcome(self):
            fate = told.pop(0)
            if isinstance(fate, Exception):
                raise fate
            return fate

    error.transaction = Asked()
    return error


def test_only_what_was_committed_counts(monkeypatch):
    monkeypatch.setattr("framework.bench.soak_tran.time.sleep", lambda _: None)
    refused = RemoteError("RefusedError: a1 has 0, not 5")
    ends = None, refused, Aborted("deadlock"), unknown("commit"), unknown(Unavailable("not yet"), "abort")
    client = TranClient("client1", Orb(*ends), "0", 0.1)
    for _ in ends:
        client._transfer()
    assert (client.committed, client.refused, client.aborted, client.asked) == (2, 1, 1, 2)
    assert sum(client.moved.values()) == 0 and sum(map(abs, client.moved.values())) > 0


def test_a_read_with_the_wrong_sum_is_an_error():
    client = TranClient("client1", Orb(TOTAL, TOTAL - 1), "0", 0.1)
    client._read(0.0)
    assert client.errors == []
    client._read(0.0)
    assert f"the banks have {TOTAL - 1}, not {TOTAL}" in client.errors[0]
