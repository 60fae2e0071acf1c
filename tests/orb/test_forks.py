"""A process that is forked from one that uses OBO says so at each attempt, and never hangs; the parent goes on."""

import multiprocessing
import os
import subprocess
import sys
import textwrap

import pytest

from framework.testing import cluster
from objects.bank import Bank

HANG = 120.0  # seconds after which a program here hangs

#: Runs in a process of its own. ``inherited`` is what the parent had when it forked; the child writes what it met.
PROGRAM = """
import asyncio, multiprocessing, os, sys, threading
from framework import AsyncOrb, BadRequest, connect
from objects.bank import Bank

ADDRESSES = sys.argv[1]

def tried(what, act):
    try:
        print(what, "gives", act(), flush=True)
    except BadRequest as error:
        print(what, "is refused:", error, flush=True)

def forked(act):
    child = os.fork()
    if not child:
        try:
            act()
        except BaseException as error:
            print("the child raised", repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    print("the child ended with", os.waitpid(child, 0)[1], flush=True)

async def alone():
    async with AsyncOrb(ADDRESSES) as orb:
        return await orb.object("bank").balance("ann")
"""

INHERITED = """
with connect(ADDRESSES) as orb:
    bank = orb.object(Bank, "bank")
    called = []
    hold = threading.Event()
    orb._loop.call_soon_threadsafe(hold.wait)  # so this call is under way when the process forks
    late = bank.balance.submit("ann")
    late.add_done_callback(called.append)

    def child():
        tried("late", lambda: late.result())
        print("callbacks in the child:", called, flush=True)
        tried("a call", lambda: bank.balance("ann"))
        tried("submit", lambda: bank.balance.submit("ann"))
        tried("oneway", lambda: bank.deposit.oneway("ann", 1))
        tried("a look", lambda: orb.look("objects"))
        tried("connect", lambda: connect(ADDRESSES))
        tried("AsyncOrb", lambda: asyncio.run(alone()))
        orb.close()

    forked(child)
    hold.set()
    print("the parent has", late.result(), bank.balance("ann"), flush=True)
"""

BEFORE = """
forked(lambda: tried("the child", lambda: connect(ADDRESSES).object(Bank, "bank").balance("ann")))
with connect(ADDRESSES) as orb:
    tried("the parent", lambda: orb.object(Bank, "bank").balance("ann"))
"""

POOL = """
def work(name):
    with connect(ADDRESSES) as orb:
        return orb.object(Bank, "bank").balance(name)

with connect(ADDRESSES) as orb:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        tried("the pool", lambda: pool.map(work, ["ann"]))
"""

IN_LOOP = """
async def main():
    async with AsyncOrb(ADDRESSES) as orb:
        bank = orb.object("bank")
        late = bank.balance.submit("ann")
        child = os.fork()
        if not child:
            acts = {"late": lambda: late, "a call": lambda: bank.balance("ann"), "a look": lambda: orb.look("objects")}
            for what, act in acts.items():
                try:
                    print(what, "gives", await act(), flush=True)
                except BadRequest as error:
                    print(what, "is refused:", error, flush=True)
            return "child"
        print("the child ended with", os.waitpid(child, 0)[1], flush=True)
        print("the parent has", await late, flush=True)
        return "parent"

if asyncio.run(main()) == "child":
    os._exit(0)
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")


@pytest.fixture(scope="module")
def addresses():
    with cluster({"bank": Bank}, nodes=1) as made:
        with made.connect() as orb:
            orb.object(Bank, "bank").deposit("ann", 5)
        yield ",".join(made.addresses.values())


def run(program, addresses):
    text = textwrap.dedent(PROGRAM) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text, addresses], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines(), done.stderr


def refused(lines, *whats):
    for what in whats:
        (line,) = [line for line in lines if line.startswith(what)]
        assert line.startswith(f"{what} is refused: this process was forked from one that already used OBO"), lines
        assert "multiprocessing.get_context('spawn')" in line


def test_a_child_is_refused_and_the_parent_goes_on(addresses):
    lines, errors = run(INHERITED, addresses)
    refused(lines, "late", "a call", "submit", "oneway", "a look", "connect", "AsyncOrb")
    assert "callbacks in the child: []" in lines, "what was to be done with the answer is done by the parent alone"
    assert lines[-2:] == ["the child ended with 0", "the parent has 5 5"]
    assert "never awaited" not in errors


@pytest.mark.full  # it failed once in a run of all: see CHANGELOG, Known
def test_a_child_of_a_coroutine_is_refused(addresses):
    lines, errors = run(IN_LOOP, addresses)
    assert not errors, errors
    refused(lines, "late", "a call", "a look")
    assert lines[-2:] == ["the child ended with 0", "the parent has 5"]


def test_a_fork_before_the_first_connection_is_harmless(addresses):
    lines, _ = run(BEFORE, addresses)
    assert lines == ["the child gives 5", "the child ended with 0", "the parent gives 5"]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="nothing forks here")
def test_a_pool_of_forked_workers_is_refused(addresses):
    lines, _ = run(POOL, addresses)
    refused(lines, "the pool")
