"""``obo demo``: three real nodes, a kill, and books that are right; and that it would tell if they were not."""

import os
import re
import signal
import subprocess
import time

import pytest
from rich.console import Console

from framework.cli.demo_money import ACCOUNTS, NAME, NOTE, START, Tally, prepare
from framework.cli.demo_verdict import judge
from framework.cli.demo_view import View
from framework.testing import cluster
from objects.sql.client import Sql
from objects.sql.database import Database
from tests.cli.conftest import only_at
from tests.cli.run_obo import COMMAND, obo, surroundings

PATIENCE = 120.0  # seconds; long, for machines that are busy


def test_it_tells_what_happened_and_that_it_was_right(tmp_path):
    done = obo("demo", "--seconds", "6", "--clients", "4", timeout=240, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    for told in (
        "4 clients begin",
        "n3 is killed (kill -9); the others go on",
        "n3 is started again",
        "n3 is back, with all that it has missed",
        "✓ No client saw an error",
        f"✓ No money was lost or made: {ACCOUNTS} accounts hold {ACCOUNTS * START:,}",
        "confirmed transfers is in the books exactly once.",
        "✓ The 3 copies are the same",
        "met no other one that touched the same",
        "waited for it: they were performed in the same order on every copy",
    ):
        assert told in " ".join(done.stdout.split()), told
    made = re.search(r"([\d,]+) transfers were made", done.stdout)
    assert made and int(made[1].replace(",", "")) > 20
    assert max(map(len, done.stdout.splitlines())) <= 140
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_ctrl_c_cleans_up(tmp_path):
    words = [*COMMAND, "demo", "--seconds", "600", "--clients", "2"]
    environment = surroundings(TMPDIR=str(tmp_path), PYTHONUNBUFFERED="1")
    demo = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert any("clients begin" in line for line in demo.stdout)
        nodes = _children(demo.pid)
        assert len(nodes) >= 3
        demo.send_signal(signal.SIGINT)
        said = demo.stdout.read()
        assert demo.wait(PATIENCE) == 130
    finally:
        demo.kill()
        demo.wait()
    assert "Stopped: the nodes are ended" in said and "Traceback" not in said
    until = time.monotonic() + PATIENCE
    while any(_runs(pid) for pid in nodes):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert list(tmp_path.iterdir()) == []


def _children(pid):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True)
    return [int(word) for word in listed.stdout.split()]


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_options_that_do_not_go_together():
    done = obo("demo", "--seed", "5")
    assert (done.returncode, done.stderr) == (2, "obo: error: --seed and --fast belong to --world\n")


class Told:
    """A client, as far as it is judged."""

    def __init__(self, confirmed=(), unsure=()):
        self.confirmed, self.unsure = list(confirmed), list(unsure)


@pytest.fixture(scope="module")
def nodes():
    with cluster({NAME: Database}, nodes=3) as c:
        yield c


@pytest.fixture
def books(nodes):
    db = Sql(nodes.connect(), NAME)
    for table in db.tables("linearizable"):
        db.execute(f"DROP TABLE {table}")
    prepare(db)
    return db


def wrong(books, client, tally=None):
    return [finding.text for finding in judge(books, [client], tally or Tally()) if not finding.good]


def move(books, number, amount=5):
    books.transaction(
        [
            (f"UPDATE accounts SET balance = balance - {amount} WHERE id = 1", ()),
            (f"UPDATE accounts SET balance = balance + {amount} WHERE id = 2", ()),
            (NOTE, [number, 1, 2, amount]),
        ]
    )


def test_books_that_are_right(books):
    move(books, 1)
    move(books, 2)
    assert wrong(books, Told([1], unsure=[2, 3])) == []


def test_money_that_is_gone(books):
    books.execute("UPDATE accounts SET balance = balance - 1 WHERE id = 7")
    assert wrong(books, Told()) == ["There is 199,999 on the accounts, not 200,000; 1 accounts are wrong."]


def test_money_on_the_wrong_account(books):
    move(books, 1)
    books.execute("UPDATE history SET target = 3 WHERE id = 1")
    assert wrong(books, Told([1])) == ["There is 200,000 on the accounts, not 200,000; 2 accounts are wrong."]


def test_a_transfer_that_is_lost_or_was_never_asked_for(books):
    move(books, 1)
    assert wrong(books, Told([1, 2])) == ["1 confirmed transfers are lost, 0 are there unasked."]
    assert wrong(books, Told()) == ["0 confirmed transfers are lost, 1 are there unasked."]


def test_a_copy_that_differs(books):
    only_at(books.orb, f"{NAME}@n2", "UPDATE accounts SET balance = 1001 WHERE id = 9")
    only_at(books.orb, f"{NAME}@n2", "UPDATE accounts SET balance = 999 WHERE id = 8")
    found = judge(books, [Told()], Tally())[-1]
    assert not found.good and found.text == f"table accounts differs at {NAME}@n2: the rows are not the same"


def test_errors_of_clients(books):
    tally = Tally()
    tally.failed("Unavailable: nobody")
    assert wrong(books, Told(), tally) == ["1 calls failed, the first with: Unavailable: nobody"]


def test_speed():
    tally = Tally()
    now = time.monotonic()
    for number in range(100):
        tally.add(now, number / 1000, refused=False)
    tally.add(now, 9.0, refused=True)
    _, half, nearly_all = tally.speed()
    assert (half, nearly_all) == (0.05, 0.099)
    assert (tally.confirmed, tally.refused, tally.longest, sum(tally.per_second)) == (100, 1, 9.0, 100)
    assert Tally().speed() == (0.0, 0.0, 0.0)


def test_a_line_is_not_long_whatever_nodes_do(capsys):
    """The first run in which a node was seen while it got its state had a line of 158 characters."""
    tally = Tally()
    for _ in range(4_999):
        tally.add(tally.began, 12.3, False)
    job = {"replica": f"{NAME}@n3", "from": f"{NAME}@n1", "bytes": 1_234_567_890}
    out = {"group": {"state": "out", "why": "it has left in order: view 2 was decided without this node"}}
    transfers = {"unready": [f"{NAME}@n3"], "adopting": [], "fetching": [job]}
    unready = {"group": {"state": "steady"}, "transfers": transfers}
    view = View(Console(), 60.0)
    view.begin(tally)
    view._next = 0.0
    view.update({"n1": {"error": "no route"}, "n2": out, "n3": unready})
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("n1 not reached, n2 no member, n3 gets its state")
    assert len(line) <= 140
