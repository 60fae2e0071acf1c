"""Ctrl-C at any moment of any command: exit code 130, no traceback, no process left (framework/interrupt.py).

The moments are events inside of the command or of its children, counted, not times: see interrupting/sitecustomize.py.
"""

import os
import random
import subprocess
import time
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.run_obo import COMMAND, surroundings

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")

HERE = Path(__file__).parent / "interrupting"
PATIENCE = 120.0  # for what hangs

ASK = "status --at 127.0.0.1:1"
SIM = "sim --seeds 0:1000000 --jobs 3 --nodes 3 --objects 2 --clients 2 --calls 2"
FIG9 = "fig9 --set transactions=1 --seeds 1000 --step 100 --jobs 2 --out {tmp}/f.png"
DEMO = "demo --seconds 60 --clients 2"
LOAD = "load counter --nodes 2 --processes 2 --duration 60 --out {tmp}/run"
RPC = "bench rpc --only lone --seconds 60"
MEMBERSHIP = "bench membership --nodes 3 --seconds 60"
SOAK = "soak --minutes 5 --nodes 3"


def press(tmp_path, words, when):
    """Run a command and press Ctrl-C: what was pressed, how it ended, what it said, and which processes it left."""
    mark, pressed = uuid4().hex, tmp_path / "pressed"
    pressed.touch()
    more = {"OBO_PRESS": when, "OBO_PRESSED": str(pressed), "OBO_MARK": mark}
    more["PYTHONPATH"] = os.pathsep.join([str(HERE), os.getcwd()])
    command = [*COMMAND, *words.format(tmp=tmp_path).split()]
    with subprocess.Popen(
        command,
        env=surroundings(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            _, error = process.communicate(timeout=PATIENCE)
        finally:
            for pid in [process.pid, *alive(mark)] if process.poll() is None else ():
                os.kill(pid, 9)
    return pressed.read_text(), process.returncode, error, left_of(mark)


def alive(mark):
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"OBO_MARK={mark}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue  # it has ended, or it is not ours
    return found


def left_of(mark):
    """A killed process is there until the system has taken it down."""
    until = time.monotonic() + 60
    while (found := alive(mark)) and time.monotonic() < until:
        time.sleep(0.02)
    for pid in found:
        os.kill(pid, 9)
    return found


def name(value):
    return value.partition(" -")[0]


def check(tmp_path, words, when):
    pressed, code, error, left = press(tmp_path, words, when)
    assert pressed, f"it ended with {code} before that: {error}"
    assert code == 130, (code, pressed, error)
    for word in ("Traceback", "KeyboardInterrupt", "Exception ignored", "Fatal"):
        assert word not in error, (pressed, error)
    assert not left, pressed


@pytest.mark.parametrize(
    ("words", "when"),
    [
        (ASK, "command:import:1"),  # the first that is imported
        (ASK, "command:import:300"),
        ("sql --help", "command:exit:1"),  # when all is over
        (SIM, "command:subprocess.Popen:1"),  # before a worker starts
        (SIM, "command:subprocess.Popen:3"),
        (SIM, "child:import:1"),  # a worker has begun to start
        (SIM, "child:import:150"),
        (SIM, "child:import:1,2,3,4"),  # and nobody is patient
        (FIG9, "command:subprocess.Popen:2"),
        (FIG9, "child:import:120"),
        (LOAD, "command:subprocess.Popen:2"),
        (DEMO, "child:import:100"),
    ],
    ids=name,
)
def test_ctrl_c_at_a_certain_moment(tmp_path, words, when):
    check(tmp_path, words, when)


def sweep():
    """Commands and moments: what they and their children do while they start, and times until all is under way."""
    chance = random.Random("ctrl-c")
    for words, rounds in ((SIM, 24), (FIG9, 24), (LOAD, 12), (DEMO, 12)):
        yield from ((words, moment(chance)) for _ in range(rounds))
    for words in (RPC, MEMBERSHIP, SOAK, f"{DEMO} --postgres", f"{SOAK} --sql", "bench sql --seconds 60"):
        yield from ((words, moment(chance)) for _ in range(6))


def moment(chance):
    kind = chance.choice(["command:any", "child:any", "command:delay"])
    first = {"command:any": chance.randint(1, 4000), "child:any": chance.randint(1, 1000)}
    at = first.get(kind, chance.randint(1, 8000))
    counts = [at, at + chance.randint(1, 50)][: chance.choice([1, 1, 2])]  # and some press twice
    return f"{kind}:{','.join(map(str, counts))}"


@pytest.mark.full
@pytest.mark.parametrize(("words", "when"), list(sweep()), ids=name)
def test_ctrl_c_at_any_moment(tmp_path, words, when):
    check(tmp_path, words, when)
