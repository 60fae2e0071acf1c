"""kill -9 at any moment: what was committed is there with its notes, and nothing else."""

import json
import random
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from framework import Broken, performing
from objects.sql import Database
from tests.objects.sql.replica import Replica, Request

ROOT = Path(__file__).parents[3]
LIVES = {"sqlite": 6, "postgres": 4}


def started(place, *words):
    text = json.dumps({**asdict(place), "directory": str(place.directory)})
    command = [sys.executable, "-m", "tests.objects.sql.performer", text, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)


def live(place, lines, pause, *words):
    """A process until it has said so many lines, and a moment longer; the lines."""
    with started(place, *words) as process:
        said = [process.stdout.readline() for _ in range(lines)]
        time.sleep(pause)
        assert process.poll() is None, "it ended by itself"
        process.kill()
        return said + [line for line in process.stdout.readlines() if line.endswith(b"\n")]


def opened(place):
    """The server may not have noticed yet that the other process is gone."""
    for _ in range(600):
        database = Database()
        try:
            database.open(place)
            return database
        except Broken:
            time.sleep(0.1)
    raise AssertionError("it cannot be opened")


def check(place, reported):
    database = opened(place)
    recalled = database.recall()
    known = max([int(recalled.head), *map(int, recalled.entries)])
    assert known >= reported
    assert list(map(int, recalled.entries)) == list(range(known - len(recalled.entries) + 1, known + 1))
    with performing(Request()):
        rows = database.query("SELECT id, length(v) FROM t ORDER BY id").rows
    assert rows == [(number, number % 5000) for number in range(1, known + 1)]
    database.close()
    return known


@pytest.fixture
def place(make):
    made = make("n1", begun=False)
    made.close()
    return made.place


def test_writing(place, dialect):
    chance = random.Random(5)
    known = 0
    for _ in range(LIVES[dialect]):
        said = live(place, chance.randrange(1, 60), chance.random() * 0.02, "write")
        known = check(place, max(map(int, said)))
    assert known > 50


def test_receiving(place, dialect, tmp_path, make):
    giver = make("n2")
    giver.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    giver.batch(("executemany", "INSERT INTO t VALUES (?, ?)", [[n, "x" * 1000] for n in range(1000)]))
    (tmp_path / "state").write_bytes(b"".join(giver.database.get_state()))
    chance = random.Random(6)
    for life in range(LIVES[dialect]):
        live(place, chance.randrange(1, 4), chance.random() * 0.1, "receive", str(tmp_path / "state"))
        database = opened(place)
        if database.recall() is None:
            assert database.tables() == []
        else:  # it was killed before it had begun
            assert life % 2 == 0
            assert database.fingerprint() == giver.database.fingerprint()
        if life % 2:  # a state that was taken over is one that the next transfer destroys
            database.set_state(giver.database.get_state())
            database.begin()
            database.commit([], b"0")
            assert database.fingerprint() == giver.database.fingerprint()
        database.close()


def test_a_server_is_killed_while_it_writes(postgres_servers, postgres_urls, tmp_path):
    made = Replica(tmp_path, "n1", urls=postgres_urls, begun=False)
    made.close()
    chance = random.Random(7)
    for _ in range(3):
        with started(made.place, "write") as process:
            said = [process.stdout.readline() for _ in range(chance.randrange(1, 40))]
            time.sleep(chance.random() * 0.05)
            postgres_servers["n1"].kill()
            said += process.stdout.readlines()
            assert process.wait(30) != 0
        postgres_servers["n1"].start()
        check(made.place, max(int(line) for line in said if line.endswith(b"\n")))


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_copy_of_the_files_at_any_moment_is_a_database(make, tmp_path):
    """What a crash leaves, as far as the system has written it: each state on the way is one of those committed."""
    made = make("n1")
    made.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    for number in range(1, 6):
        made.database.begin()
        made.call("execute", "INSERT INTO t VALUES (?, 'x')", [number])
        for step in ("before", "after"):
            if step == "after":
                made.database.commit([b"%d" % number])
            target = tmp_path / f"copy-{number}-{step}"
            shutil.copytree(tmp_path / "n1", target / "n1")
            copy = Replica(target)
            there = number - (step == "before")
            assert copy.ask("SELECT count(*) FROM t") == [(there,)]
            assert [int(e) for e in copy.database.recall().entries] == list(range(1, there + 1))
            copy.close()
