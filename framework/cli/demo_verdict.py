"""The end of ``obo demo``: are the books right? Judged by what clients were told and what each copy holds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from framework.cli.demo_money import ACCOUNTS, START, TOTAL, WRONG, Client, Tally
from framework.cli.sql_check import problems
from framework.cli.sql_replicas import whole

if TYPE_CHECKING:
    from objects.sql.client import Sql


class Finding(NamedTuple):
    good: bool
    text: str


def judge(db: "Sql", clients: Sequence[Client], tally: Tally) -> list[Finding]:
    return [_answered(tally), _money(db), _once(db, clients), _copies(db)]


def _answered(tally: Tally) -> Finding:
    if tally.errors:
        return Finding(False, f"{len(tally.errors)} calls failed, the first with: {tally.errors[0]}")
    return Finding(True, f"No client saw an error; the longest wait for an answer was {tally.longest:.1f} s.")


def _money(db: "Sql") -> Finding:
    total = db.query("SELECT sum(balance) FROM accounts", read="linearizable").rows[0][0]
    wrong = db.query(WRONG, [START], read="linearizable").rows[0][0]
    if total != TOTAL or wrong:
        return Finding(False, f"There is {total:,} on the accounts, not {TOTAL:,}; {wrong} accounts are wrong.")
    return Finding(
        True, f"No money was lost or made: {ACCOUNTS} accounts hold {TOTAL:,}, as in the beginning, each to the coin."
    )


def _once(db: "Sql", clients: Sequence[Client]) -> Finding:
    """The number of a transfer is the key of its row: it cannot be there twice, but it could be missing."""
    confirmed = {number for client in clients for number in client.confirmed}
    unsure = {number for client in clients for number in client.unsure}
    there = {row[0] for row in db.query("SELECT id FROM history", read="linearizable").rows}
    lost, invented = confirmed - there, there - confirmed - unsure
    if lost or invented:
        return Finding(False, f"{len(lost):,} confirmed transfers are lost, {len(invented):,} are there unasked.")
    return Finding(True, f"Each of the {len(confirmed):,} confirmed transfers is in the books exactly once.")


def _copies(db: "Sql") -> Finding:
    digests = db.digests()
    if wrong := problems(digests):
        return Finding(False, "; ".join(wrong))
    count = len(digests.replicas)
    return Finding(
        True, f"The {count} copies are the same, row for row: digest {whole(digests.replicas.popitem()[1])}."
    )
