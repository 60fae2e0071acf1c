"""kill -9 of a real process: all that it had reported is found, and it goes on from there."""

import subprocess
import sys
from pathlib import Path
from random import Random

from framework.ids import Node, Replica
from framework.store import Store
from framework.store.look import look
from tests.store.appender import record

REPLICAS = ["bank@n1", "car@n1"]
ROOT = Path(__file__).parent.parent.parent


def test_what_was_reported_is_there_after_kill_9(tmp_path: Path) -> None:
    random = Random(4)
    reported = dict.fromkeys([*REPLICAS, "node"], 0)
    for _ in range(10):
        life(tmp_path / "s", random.randrange(1, 120), reported)
        with Store(tmp_path / "s", Node("n1")) as store:
            for name in REPLICAS:
                assert check(store, name) >= reported[name]
            assert reported["node"] == 0 or store.remembered() is not None
    assert all(reported.values())


def life(directory: Path, lines: int, reported: dict[str, int]) -> None:
    """A process runs until it has said so many lines; all that it said goes into ``reported``."""
    command = [sys.executable, "-m", "tests.store.appender", str(directory), *REPLICAS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        looked = look(directory)
        assert looked.in_use and not [r.problem for r in looked.replicas if r.problem]
        process.kill()
        said += process.stdout.readlines()
    assert process.returncode == -9, "it ended by itself"
    for line in said:
        if line.endswith(b"\n"):
            name, position = line.decode().split()
            reported[name] = int(position)


def check(store: Store, name: str) -> int:
    loaded = store.journal(Replica(name)).load()
    if loaded.base:
        assert loaded.snapshot is not None
        assert list(loaded.snapshot) == [b"%d" % loaded.base, b"x" * 5000]
    position = loaded.base
    for at, data in loaded.records:
        position += 1
        assert (at, data) == (position, record(name, position))
    assert position == loaded.position
    return position
