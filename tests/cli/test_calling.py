"""``obo call``, ``ls``, ``describe`` and ``status`` against one node; and what they make of what they are given."""

import io
import json
import signal
import subprocess
import sys
from itertools import islice

import pytest
from rich.console import Console

from framework import BadRequest
from framework.cli import status
from framework.cli.call import _arguments
from framework.cli.commands import main
from framework.testing.ports import held
from tests.cli.run_obo import COMMAND, surroundings
from tests.cluster.processes import processes

OBJECTS = """
[objects.bank]
class = "objects.bank:Bank"
[objects.counter]
class = "objects.counter:Counter"
[objects.odd]
class = "tests.orb.things:Odd"
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with held(1) as ports, processes(ports, tmp_path_factory.mktemp("node"), OBJECTS) as run:
        yield run


@pytest.fixture
def ask(node, monkeypatch, capsys):
    """A command in this process: each start costs a second. tests/cluster runs the same commands as users do."""
    monkeypatch.setenv("OBO_AT", node.at("n1"))

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["obo", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return ended.value.code or 0, told.out, told.err

    return run


def test_call(ask):
    assert ask("call", "bank", "deposit", "ann", 5) == (0, "", "")
    assert ask("call", "bank", "deposit", "amount=3", "account=ann", "--receipt", "all") == (0, "", "")
    assert ask("call", "bank", "deposit", "bob", "amount=1", "--oneway") == (0, "", "")
    assert ask("call", "bank", "deposit", 7, 2) == (0, "", ""), "an account named 7 is a text"
    assert ask("call", "bank", "audit") == (0, '{"7":2,"ann":8,"bob":1}\n', "")
    code, out, said = ask("call", "bank", "withdraw", "ann", 500)
    assert (code, out) == (1, "") and said.startswith("RefusedError: ann has 8, not 500\nraised at bank@n1:")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("bnk", "audit"), "no object 'bnk'; did you mean 'bank'?"),
        (("bank", "audt"), "bank has no method 'audt'; did you mean 'audit'?"),
        (("bank", "deposit", "ann"), "'amount' is missing (it takes: account: str, amount: int)"),
        (("bank", "deposit", "ann", "much"), "argument amount='much'"),
        (("bank", "deposit", "account=ann", "5"), "argument '5' has no name"),
        (("bank", "deposit", "account=ann", "account=bob"), "'account' is given twice"),
        (("bank", "deposit", "ann", "5", "account=ann"), "'account' is given twice"),
        (("bank", "balance", "ann", "--oneway"), "leave out --oneway"),
        (("bank", "balance", "ann", "--receipt", "some"), "majority, all, first, or how many"),
        (("bank", "balance", "ann", "--receipt", "2"), "can never complete"),
        (("bank", "deposit", "ann", "1", "--receipt", "all", "--oneway"), "leave out --receipt"),
        (("bank", "balance", "ann", "--timeout", "0"), "--timeout 0"),
        (("odd", "slow", "30", "--timeout", "0.3"), "not complete at the deadline"),
    ],
)
def test_mistakes_of_a_call(ask, words, complaint):
    code, out, said = ask("call", *words)
    assert (code, out) == (2, "")
    assert complaint in said and said.startswith("obo: error:") and said.count("\n") == 1


def test_words_become_arguments():
    signature = {"parameters": [{"name": "name", "type": "str"}, {"name": "value", "type": "Any"}]}

    def read(*words):
        return _arguments(signature, words)

    assert read("5", "5") == (["5", 5], {})
    assert read("true", '{"a": [1]}') == (["true", {"a": [1]}], {})
    assert read('"x"', "x y") == (["x", "x y"], {})
    assert read("a=b", "value=[1]") == (["a=b"], {"value": [1]})
    assert read("name=name=1", "value=") == ([], {"name": "name=1", "value": ""})
    assert read("1", "2", "3") == (["1", 2, 3], {})
    with pytest.raises(BadRequest, match="has no name"):
        read("value=1", "x")


def test_help_has_examples(ask):
    for command in ("call", "describe", "status"):
        code, out, _ = ask(command, "--help")
        assert code == 0 and f"Example: obo {command}" in out


def test_describe(ask, node):
    code, out, _ = ask("describe", "bank")
    assert code == 0
    assert all(len(line) <= 100 for line in out.splitlines())
    assert "objects.bank:Bank" in out and "Accounts come into being" in out
    assert "audit() -> dict[str, int]" in out and "source, target" in out
    assert "conflict where keys meet" in out and "balance (readonly)" in out
    assert "bank@n1" in out and node.at("n1") in out
    told = json.loads(ask("describe", "odd", "--json")[1])
    assert next(m for m in told["signatures"] if m["name"] == "slow")["async"]
    code, out, said = ask("describe", "bak")
    assert (code, said) == (2, "obo: error: no object 'bak'; did you mean 'bank'?\n")


def test_ls(ask):
    code, out, _ = ask("ls")
    assert code == 0 and "objects.counter:Counter" in out
    told = [json.loads(line) for line in ask("ls", "--json")[1].splitlines()]
    assert [t["name"] for t in told] == ["bank", "counter", "odd"]


def test_status(ask, ports):
    code, out, said = ask("status")
    assert code == 0, said
    assert "bank@n1" in out and "nothing waits" in out and all(len(line) <= 100 for line in out.splitlines())
    (told,) = [json.loads(line) for line in ask("status", "--json")[1].splitlines()]
    assert (told["node"], told["links"]) == ("n1", {})
    code, out, _ = ask("status", "--at", f"127.0.0.1:{ports(1)[0]}")
    assert code == 1 and "not reached" in out
    assert "--watch 0" in ask("status", "--watch", 0)[2]


def test_status_again_and_again_until_interrupted(node):
    command = [*COMMAND, "status", "--json", "--watch", "0.1", "--at", node.at("n1")]
    asked = subprocess.Popen(command, env=surroundings(), stdout=subprocess.PIPE, encoding="utf-8")
    try:
        looks = (json.loads(line) for line in asked.stdout)  # a node that is too busy for a moment is told as an error
        assert [look["node"] for look in islice((look for look in looks if "node" in look), 3)] == ["n1"] * 3
        asked.send_signal(signal.SIGINT)
        asked.communicate(timeout=30)
        assert asked.returncode == 0
    finally:
        asked.kill()
        asked.wait()


def test_status_of_a_busy_cluster_fits_the_width():
    stages = {
        "announced": 1,
        "held": 2,
        "proposed": 3,
        "agreed": 4,
        "running": 5,
        "performed": 123456789,
        "convoys": 12345678,
    }
    wait = {
        "replica": "warehouse@node1",
        "request": "transfer([bold]:w, b:w)",
        "call": "c-0123456789abcdef/12345",
        "stage": "agreed",
        "why": "conflicts with <1:tran@n1:0 deposit(a:w) 12/1:tran@n1:0>",
    }
    one = {
        "address": "127.0.0.1:7401",
        "node": "node1",
        "view": 12,
        "clock": 123456789,
        "group": {
            "state": "changing",
            "why": "",
            "members": {"node1": 1, "node2": 1, "node3": 12},
            "suspected": {"node2": 1.234},
            "leaving": [],
        },
        "transfers": {
            "unready": {"warehouse@node1": ["node2"], "[shop]@node1": []},
            "fetching": [
                {"replica": "warehouse@node1", "from": "node2", "bytes": 1 << 20, "total": 1 << 27, "fault": "[broke]"}
            ],
            "adopting": [],
            "giving": [],
        },
        "links": {"node2": {"up": False, "lost": 3, "queued": 10, "unacked": 20, "member": True}},
        "replicas": {"warehouse@node1": stages},
        "waiting": [wait] * 50,
        "waiting_in_all": 5000,
        "calls": [{"by": "c-1", "number": 7, "receipt": "quorum(2)", "missing": ["warehouse@node1"]}] * 30,
        "clients": {"c-1": 30},
        "invokes": 2,
        "process": {"uptime": 98765.4, "rss": 1 << 30, "threads": 300},
    }
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(status._tables([one, {"address": "127.0.0.1:7402", "error": "no node could be reached: [x]"}]))
    out = console.export_text()
    assert max(map(len, out.splitlines())) <= 100
    for words in ("DOWN", "and 4980 more", "and 10 more", "27:26:05", "1024 MiB", "[bold]", "[x]", "not reached", "32"):
        assert words in out
    for words in ("changing", "node3 12", "node2 1.2 s", "comes from node2 ([broke])", "1,048,576", "nobody has one"):
        assert words in out
