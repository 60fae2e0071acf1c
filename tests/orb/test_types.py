"""mypy sees the signatures through a typed proxy."""

from mypy import api

GOOD = """
from concurrent.futures import Future
from framework import ALL, Orb
from objects.bank import Bank

def use(orb: Orb) -> int:
    bank = orb.object(Bank, "bank")
    bank.deposit("ann", 5)
    bank.deposit("ann", amount=5)
    later: Future[int] = bank.balance.submit("ann")
    bank.deposit.oneway("ann", 5)
    bank.deposit.with_(timeout=0.5, receipt=ALL)("ann", 5)
    orb.drec(orb.pcast(bank.deposit.request("ann", 5)))
    orb.object("bank").anything(1, 2)
    return later.result() + bank.balance("ann")
"""

BAD = """
from framework import Orb
from objects.bank import Bank

def use(orb: Orb) -> None:
    bank = orb.object(Bank, "bank")
    bank.deposit("ann", "5")
    bank.deposit("ann")
    bank.deposit.submit(5, 5)
    bank.depost("ann", 5)
    text: str = bank.balance("ann")
    text = bank.balance.submit("ann").result()
    bank.deposit.with_(timeout=1)("ann", None)
"""

ASYNC_GOOD = """
import asyncio
from framework import ALL, AsyncOrb
from objects.bank import Bank

async def use() -> int:
    async with AsyncOrb("127.0.0.1:7401") as orb:
        bank = orb.object(Bank, "bank")
        await bank.deposit("ann", 5)
        await bank.deposit("ann", amount=5)
        x: int = await bank.balance("ann")
        later = bank.balance.submit("ann")
        y: int = await later
        many: tuple[int, int] = await asyncio.gather(bank.balance("ann"), bank.balance.submit("bob"))
        await bank.deposit.oneway("ann", 5)
        await bank.deposit.with_(timeout=0.5, receipt=ALL)("ann", 5)
        await orb.drec(await orb.pcast(bank.deposit.request("ann", 5)))
        await orb.object("bank").anything(1, 2)
        task: asyncio.Task[int] = asyncio.create_task(bank.balance("ann"))
        return x + y + sum(many) + await task
"""

ASYNC_BAD = """
from framework import AsyncOrb
from objects.bank import Bank

async def use(orb: AsyncOrb) -> None:
    bank = orb.object(Bank, "bank")
    await bank.deposit("ann", "5")
    await bank.deposit("ann")
    bank.deposit.submit(5, 5)
    await bank.depost("ann", 5)
    text: str = await bank.balance("ann")
    text = await bank.balance.submit("ann")
    await bank.deposit.with_(timeout=1)("ann", None)
    number: int = bank.balance("ann")
    bank.deposit("ann", 5)
"""

#: A method that is async def: a caller gets its result; only the function itself gives a coroutine.
ASYNC_DEF = """
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any
from framework import AsyncOrb, Object, Orb, method

class Door(Object):
    @method
    async def opened(self, times: int) -> str:
        return "x" * times

    @method(readonly=True)
    async def shows(self) -> int:
        return 1

    @method
    def both(self, times: int) -> int:
        return times

def sync_use(orb: Orb) -> None:
    door = orb.object(Door, "door")
    text: str = door.opened(1)
    later: Future[str] = door.opened.submit(1)
    number: int = door.shows()

async def async_use(orb: AsyncOrb) -> None:
    door = orb.object(Door, "door")
    text: str = await door.opened(1)
    text = await door.opened.submit(1)
    number: int = await door.shows() + await door.both(2)

async def direct() -> None:
    door = Door()
    text: str = await Door.opened(door, 1)
    number: int = await Door.shows(door) + Door.both(door, 2)

def wrong(orb: Orb) -> None:
    door = orb.object(Door, "door")
    number: int = door.opened(1)
    coroutine: Coroutine[Any, Any, str] = door.opened(1)
    number = door.opened("1")
    number = Door.both(door, "2")
"""


def check(tmp_path, text):
    file = tmp_path / "program.py"
    file.write_text(text)
    out, err, _ = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(file)])
    assert not err
    return [line for line in out.splitlines() if "error" in line and "program.py" in line], out


def test_what_is_right_passes(tmp_path):
    found, out = check(tmp_path, GOOD)
    assert not found, out


def test_what_is_wrong_is_found(tmp_path):
    found, out = check(tmp_path, BAD)
    assert {int(line.split(":")[1]) for line in found} == set(range(7, 14)), out


def test_what_is_right_passes_where_it_is_awaited(tmp_path):
    found, out = check(tmp_path, ASYNC_GOOD)
    assert not found, out


def test_what_is_wrong_is_found_where_it_is_awaited(tmp_path):
    found, out = check(tmp_path, ASYNC_BAD)
    assert {int(line.split(":")[1]) for line in found} == set(range(7, 16)), out


def test_an_async_def_has_its_result_for_callers(tmp_path):
    found, out = check(tmp_path, ASYNC_DEF)
    start = ASYNC_DEF.splitlines().index("def wrong(orb: Orb) -> None:") + 1
    assert {int(line.split(":")[1]) for line in found} == set(range(start + 2, start + 6)), out
