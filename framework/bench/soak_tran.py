"""``obo soak --transactions``: money goes from bank to bank while nodes are killed with -9.

Two banks on all nodes. Each client takes from an account of one and puts it on the same account of the other, in a
transaction, or reads both banks in one: the sum over both must be right at every such read, and at the end at every
replica; and each account must have exactly what was committed. What a client is not told at once it asks for later
(``OutcomeUnknown``). Traces are judged: one outcome, atomicity, isolation, and the properties of each call.
"""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from framework.bench.soak_clients import MOST, Runner
from framework.bench.soak_group import BACK, Faults, Plan, Progress, grave
from framework.errors import Aborted, BadRequest, OboError, OutcomeUnknown, RemoteError
from framework.orb.client import Orb
from framework.testing.clusters import cluster
from objects.bank import Bank

BANKS = ("north", "south")
ACCOUNTS = tuple(f"a{i}" for i in range(6))
START = 50  # so little that some transfers are refused
TOTAL = START * len(ACCOUNTS) * len(BANKS)
ATTEMPTS = 12
ASKED = 20  # times that an outcome is asked for
MOST_RATE = 20.0  # transactions in a second: each has five calls or so, and the oracle's work grows with the square

Moves = Counter[tuple[str, str]]  # by bank and account


class TranClient(Runner):
    """``moved``: what was committed, by what it was told. ``lost``: transactions of which nobody would say."""

    def __init__(self, name: str, orb: Orb, seed: str, pace: float) -> None:
        super().__init__(name, orb, seed, pace)
        self.moved: Moves = Counter()
        self.committed = self.refused = self.aborted = self.asked = self.lost = self.reads = 0
        self._banks = {bank: orb.object(Bank, bank) for bank in BANKS}

    def _one(self) -> None:
        start, home = time.monotonic(), self._orb.home
        kind = "read" if self._random.random() < 0.2 else "transfer"
        try:
            self._read(start) if kind == "read" else self._transfer()
            self.calls += 1
        except OboError as error:
            self._failed(kind, start, home, error)
        finally:
            self.longest = max(self.longest, time.monotonic() - start)

    def _read(self, start: float) -> None:
        def both(orb: Orb) -> int:
            return sum(sum(self._banks[bank].audit().values()) for bank in BANKS)

        try:
            total = self._orb.run_transaction(both, attempts=ATTEMPTS)
        except (Aborted, OutcomeUnknown):
            self.aborted += 1  # it has read nothing that counts
            return
        self.reads += 1
        if total != TOTAL:
            self.errors.append(f"{self.name} after {start - self._began:.1f} s: the banks have {total}, not {TOTAL}")

    def _transfer(self) -> None:
        source, target = self._random.sample(BANKS, 2)
        account, amount = self._random.choice(ACCOUNTS), self._random.randint(1, MOST)

        def move(orb: Orb) -> None:
            self._banks[source].withdraw(account, amount)
            self._banks[target].deposit(account, amount)

        try:
            self._orb.run_transaction(move, attempts=ATTEMPTS)
        except RemoteError as error:
            if not str(error).startswith("RefusedError"):
                raise
            self.refused += 1
            return
        except Aborted:
            self.aborted += 1
            return
        except OutcomeUnknown as error:
            if not self._happened(error):
                return
        self.committed += 1
        self.moved[source, account] -= amount
        self.moved[target, account] += amount

    def _happened(self, error: OutcomeUnknown) -> bool:
        self.asked += 1
        for _ in range(ASKED):
            try:
                fate: str = error.transaction.outcome()
                return fate == "commit"
            except OboError:
                time.sleep(0.5)
        self.lost += 1
        raise error


class TranReport(msgspec.Struct):
    """What came of it. It is good if ``problems`` is empty."""

    seed: int
    nodes: int
    clients: int
    seconds: float
    faults: dict[str, int]
    calls: int = 0
    longest_s: float = 0.0
    committed: int = 0
    refused: int = 0
    aborted: int = 0  # that were given up after some attempts
    asked: int = 0  # whose outcome had to be asked for later
    reads: int = 0  # of both banks, with the right sum
    views: int = 0
    crashed: int = 0
    verify_s: float = 0.0
    problems: list[str] = []

    @property
    def story(self) -> str:
        return (
            f"{self.committed} transfers committed, {self.refused} refused for lack of money, {self.aborted} given up, "
            f"{self.asked} outcomes asked for later; {self.reads} reads of both banks; {self.views} views"
        )

    @property
    def praise(self) -> str:
        return f"the sum is right at every read and at {self.nodes} replicas, traces verified in {self.verify_s:g} s"


class TranSoak(Faults):
    clients: list[TranClient]
    kinds: tuple[str, ...] = ("kill",)

    def _prepare(self) -> None:
        orb = self._c.connect(timeout=self.plan.call)
        for bank in BANKS:
            for account in ACCOUNTS:
                orb.object(Bank, bank).deposit(account, START)
        pace = self.plan.clients / min(self.plan.rate, MOST_RATE)
        for i in range(self.plan.clients):
            name, home = f"client{i + 1}", self._c.nodes[i % len(self._c.nodes)]
            orb = self._c.connect(home, timeout=self.plan.call)
            self.clients.append(TranClient(name, orb, f"{self.plan.seed} {name}", pace))

    def report(self) -> TranReport:
        """Judge it: what clients were told, what each replica has, what the traces say."""
        plan = self.plan
        said = TranReport(plan.seed, plan.nodes, plan.clients, round(self.elapsed, 1), self.faults, self.calls)
        said.longest_s = round(max(client.longest for client in self.clients), 3)
        for name in ("committed", "refused", "aborted", "asked", "reads"):
            setattr(said, name, sum(getattr(client, name) for client in self.clients))
        said.problems = [*self.errors, *self.problems]
        if not self.problems:
            said.problems += self._replicas()
        start = time.monotonic()
        try:
            verdict = self._c.verify(BACK)
            said.views, said.crashed = verdict.views, verdict.crashed
        except (OboError, AssertionError) as error:
            said.problems += str(error).splitlines()
        said.verify_s = round(time.monotonic() - start, 1)
        said.problems += grave(self._c.directory, self._c.nodes)
        return said

    def _replicas(self) -> Iterator[str]:
        try:
            found = {bank: self._everywhere(bank) for bank in BANKS}
        except OboError as error:
            yield f"the last look: {type(error).__name__}: {error}"
            return
        moved: Moves = Counter()
        for client in self.clients:
            moved.update(client.moved)  # adding counters would leave out what is below 0
        yield from wrong(found, None if any(client.lost for client in self.clients) else moved)

    def _everywhere(self, bank: str) -> dict[str, Any]:
        """At one point of the order, by node."""
        orb = self._c.connect(timeout=self.plan.call)
        replies = orb.crec(orb.mcast(orb.object(Bank, bank).audit.request()))
        if len(replies) < self.plan.nodes:
            raise OboError(f"answered by {', '.join(r.replica for r in replies)} alone")
        return {reply.replica.partition("@")[2]: reply.value for reply in replies}


def wrong(found: dict[str, dict[str, dict[str, int]]], moved: Moves | None) -> Iterator[str]:
    """``found``: by bank, node and account. ``moved``: what was committed, if all is known."""
    for node in sorted(found[BANKS[0]]):
        total = sum(sum(found[bank][node].values()) for bank in BANKS)
        if total != TOTAL:
            yield f"the banks have {total} at {node}, not {TOTAL}"
        for bank in BANKS if moved is not None else ():
            for account in ACCOUNTS:
                has, due = found[bank][node].get(account, 0), START + (moved or Counter())[bank, account]
                if has != due:
                    yield f"{bank}@{node} has {has} on {account}; by what was committed it is {due}"


def soak_tran(plan: Plan, trace: Path | None, progress: Progress) -> TranReport:
    """Nodes run inside, and have ended after it, however it ends."""
    if plan.nodes < 3:
        raise BadRequest(f"{plan.nodes} nodes bear the loss of none: 3 or more")
    with cluster(dict.fromkeys(BANKS, Bank), plan.nodes, processes=True, trace=trace, links=False) as c:
        run = TranSoak(plan, c)
        run.run(progress)
        return run.report()
