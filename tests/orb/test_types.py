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
