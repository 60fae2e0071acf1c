"""A client process of ``obo load``: reads its order from standard input, says how it gets on, writes its records.

Its parent says ``stop`` or goes away: then it sends nothing more, waits for what is under way, and ends.
"""

import asyncio
import gc
import logging
import sys
import threading
from pathlib import Path

import msgspec

from framework.analytics.columns import ClientRecord
from framework.errors import OboError
from framework.load import registry
from framework.load.latency import Latencies
from framework.load.orders import Done, Order, Progress, Ready, encode
from framework.load.pace import Clock, Drawing, Running
from framework.load.sender import Sender, home_for
from framework.load.spool import Spool
from framework.net.security import client
from framework.orb.loops import new_loop

REPORT = 0.25  # seconds between two reports, and between two looks at the disk
MOST_WAITING = 100_000  # records in memory; then the clients wait for the disk, which is counted

log = logging.getLogger(__name__)


class Tally:
    """What came since the last report; the records wait for the disk."""

    def __init__(self) -> None:
        self.records: list[ClientRecord] = []
        self._said = Progress()
        self._latency, self._run_latency = Latencies(), Latencies()

    def take(self, record: ClientRecord) -> None:
        self.records.append(record)
        counts = record.phase == "run"
        self._said.calls += 1
        self._said.run_calls += counts
        if record.status != "ok":
            self._said.errors[record.status] = self._said.errors.get(record.status, 0) + 1
            return
        self._said.ok += 1
        took = record.done - record.intended
        self._latency.add(took)
        if counts:
            self._run_latency.add(took)

    def report(self, in_flight: int, behind: float, says: str = "") -> tuple[Progress, list[ClientRecord]]:
        """And begins anew."""
        said, records = self._said, self.records
        said.latency, said.run_latency = self._latency.counts, self._run_latency.counts
        said.in_flight, said.behind, said.says = in_flight, behind, says
        self.records, self._said = [], Progress()
        self._latency, self._run_latency = Latencies(), Latencies()
        return said, records


class Worker:
    def __init__(self, order: Order) -> None:
        self.order = order
        self.plan = order.plan
        self.tally = Tally()
        self.stopped = asyncio.Event()
        self.go: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.spool = Spool(Path(order.out) / "clients", order.process, order.plan.processes)
        self.credentials = client(order.access, order.addresses)  # type: ignore[arg-type]  # it came as JSON
        self.running: Running | None = None
        self.says = ""

    def heard(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        if word == "go" and not self.go.done():
            self.go.set_result(float(rest))
        else:
            self.stopped.set()

    async def run(self) -> Done:
        reporting = asyncio.ensure_future(self._report())
        failed, extra = "", {}
        try:
            if self.plan.workload == registry.FIG9:
                from framework.load.fig9 import drive

                extra = await drive(self)
            else:
                await self._drive()
        except OboError as error:
            failed = f"{type(error).__name__}: {error}"
        except Exception as error:  # of a workload that a user wrote, for one
            log.exception("the clients cannot go on")
            failed = f"{type(error).__name__}: {error}; its traceback is in the log"
        finally:
            reporting.cancel()
        self._flush()
        try:
            await asyncio.to_thread(self.spool.close)
        except OSError as error:
            return Done(0, 0, self.spool.waits, f"records cannot be written: {error.strerror}")
        return Done(self.spool.rows, self.spool.files, self.spool.waits, failed, extra)

    async def _drive(self) -> None:
        plan, order = self.plan, self.order
        workload = registry.make(plan.workload, order.found)
        mine = range(order.process, plan.clients, plan.processes)
        homes = [home_for(order.addresses, i, plan.timeout, self.credentials) for i in mine]
        senders = [
            Sender(home, order.found, order.process, plan.workload, plan.timeout, plan.receipt, order.prefix)
            for home in homes
        ]
        try:
            await asyncio.gather(*(home.reached() for home in homes))
            names = [f"c{i}" for i in mine]
            drawing = Drawing(plan, workload, names, f"{order.run}-")
            say(Ready([s.client for s in senders]))
            start = await self.started()
            if start is None:
                return
            running = Running(plan, order.process, Clock(start), senders, names, drawing, self.tally.take)
            self.running = running
            stopping = asyncio.ensure_future(self._stop(running))
            try:
                await running.run()
            finally:
                stopping.cancel()
        finally:
            await asyncio.gather(*(home.close() for home in homes))

    async def started(self) -> float | None:
        """The time of the start; None: it is called off."""
        stopped = asyncio.ensure_future(self.stopped.wait())
        await asyncio.wait((self.go, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        return self.go.result() if self.go.done() else None

    async def _stop(self, running: Running) -> None:
        await self.stopped.wait()
        running.stop()

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(REPORT)
            if self.spool.failed is not None:
                self.stopped.set()
            if self.spool.full and len(self.tally.records) < MOST_WAITING:
                continue  # the disk is far behind: what waits goes with the next batch
            self._flush()

    def _flush(self) -> None:
        now = (self.running.in_flight, self.running.behind) if self.running is not None else (0, 0.0)
        progress, records = self.tally.report(*now, self.says)
        self.spool.put(records)
        say(progress)


def say(what: Ready | Progress | Done) -> None:
    try:
        sys.stdout.write(encode(what).decode() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        pass  # the parent is gone: the records are kept all the same


async def work(order: Order) -> int:
    worker = Worker(order)
    loop = asyncio.get_running_loop()

    def listen() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(worker.heard, line)
        loop.call_soon_threadsafe(worker.heard, "stop")  # the parent is gone

    threading.Thread(target=listen, daemon=True).start()
    done = await worker.run()
    say(done)
    return 1 if done.failed else 0


def main() -> int:
    order = msgspec.json.decode(sys.stdin.readline(), type=Order)
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        code = runner.run(work(order))
    try:
        sys.stdout.close()
    except BrokenPipeError:
        pass
    return code


if __name__ == "__main__":
    sys.exit(main())
