"""When calls are due, and when they are sent.

Open loop: calls have their times before the run begins, and are sent at these times whatever became of earlier ones. A
call that could not be sent in time, because too many are under way or this process was held up, is sent late and its
latency counts from when it was *due*: a pause of the cluster shows in all calls that it concerned, not in one of each
client ("coordinated omission"). What was due and could not be sent at all until the end is a record, too: NotSent.

Closed loop: each client makes the next call when it has the answer.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from random import Random

from framework.analytics.columns import ClientRecord
from framework.com.messages import Kind
from framework.load.draw import Call, Draw, Skew
from framework.load.plan import Plan
from framework.load.sender import Moment, Sender, Sink
from framework.load.workloads import Workload

NOT_SENT = "NotSent"
GRACE = 0.05  # seconds after the end in which what was due before is still sent
BREATH = 32  # calls that are sent in a row before answers are looked at


class Clock:
    """Seconds since the start of the run, by a clock that nobody sets, and as unix time."""

    def __init__(self, start: float) -> None:
        self.start = start  # unix time
        self._base = time.monotonic() - (time.time() - start)

    def now(self) -> float:
        return time.monotonic() - self._base

    def unix(self, seconds: float) -> float:
        return self.start + seconds


def due(plan: Plan, count: float) -> float:
    """The time by which ``count`` calls of all processes are due: the rate grows evenly during the ramp."""
    during_ramp = plan.rate * plan.ramp / 2
    if count < during_ramp:
        return sqrt(2 * plan.ramp * count / plan.rate)
    return plan.ramp + (count - during_ramp) / plan.rate


def schedule(plan: Plan, process: int) -> Iterator[float]:
    """The times of the calls of one process. Together those of all processes make up the rate."""
    chance = Random(f"{plan.seed}/arrivals/{process}")
    count = float(process)
    if plan.arrivals == "poisson":
        count = chance.expovariate(1 / plan.processes)
    while (at := due(plan, count)) < plan.total:
        yield at
        count += plan.processes if plan.arrivals == "even" else chance.expovariate(1 / plan.processes)


class Drawing:
    """What the clients of a process call next; by the seed, each client on its own."""

    def __init__(self, plan: Plan, workload: Workload, clients: Sequence[str], run: str = "") -> None:
        """``run``: makes their names differ from those of other runs on the same cluster."""
        self._plan = plan
        self._workload = workload
        skew = Skew(plan.keys, plan.skew)
        self._draws = {
            name: Draw(Random(f"{plan.seed}/calls/{name}"), f"{run}{name}", skew, plan.payload) for name in clients
        }
        self._ways = plan.ways

    def next(self, client: str, conflict: float) -> tuple[Call, bool]:
        """The call, and whether it is one-way."""
        draw = self._draws[client]
        chance = draw.chance
        draw.number += 1
        draw.conflicts = chance.random() < conflict
        draw.reads = chance.random() < self._plan.reads
        draw.way = "" if self._ways is None else chance.choices(("ucast", "mcast", "pcast"), self._ways)[0]
        one_way = chance.random() < self._plan.oneway
        call = self._workload.draw(draw)
        return call, one_way and call.silent and not call.also


class Running:
    """The clients of a process at work. ``names`` are theirs for drawing: the same in every run with this seed."""

    def __init__(
        self,
        plan: Plan,
        process: int,
        clock: Clock,
        senders: Sequence[Sender],
        names: Sequence[str],
        drawing: Drawing,
        sink: Sink,
    ) -> None:
        self.in_flight = 0
        self.behind = 0.0  # seconds that the last call was sent late
        self.stopped = False
        self._plan = plan
        self._process = process
        self._clock = clock
        self._senders = senders
        self._names = names
        self._drawing = drawing
        self._sink = sink
        self._most = max(1, plan.in_flight // plan.processes)
        self._room = asyncio.Event()

    def stop(self) -> None:
        """No more calls; those under way are waited for."""
        self.stopped = True
        self._room.set()

    async def run(self) -> None:
        if self._plan.open:
            await self._open()
        else:
            each = [self._client(i) for i in range(len(self._senders))]
            await asyncio.gather(*each)
        await self._drain()

    async def _drain(self) -> None:
        """Every call ends: by an answer, or a moment after its deadline."""
        while self.in_flight:
            await asyncio.sleep(0.01)

    # open loop

    async def _open(self) -> None:
        clients = len(self._senders)
        for i, at in enumerate(schedule(self._plan, self._process)):
            if not await self._until(at):
                if self.stopped:
                    return
                self._not_sent(i % clients, at)
                continue
            if i % BREATH == 0:
                await asyncio.sleep(0)
            self.behind = max(0.0, self._clock.now() - at)
            self._send(i % clients, at, "async", self._done)

    async def _until(self, at: float) -> bool:
        """Until it is time and there is room; False: that will not be before the end."""
        wait = at - self._clock.now()
        while wait > 0 and not self.stopped:
            await asyncio.sleep(min(wait, 0.1))
            wait = at - self._clock.now()
        while self.in_flight >= self._most and not self.stopped:
            left = self._plan.total - self._clock.now()
            if left <= 0:
                return False
            self._room.clear()
            try:
                async with asyncio.timeout(min(left, 0.1)):
                    await self._room.wait()
            except TimeoutError:
                pass
        return not self.stopped and self._clock.now() <= self._plan.total + GRACE

    def _done(self) -> None:
        self.in_flight -= 1
        self._room.set()

    def _not_sent(self, client: int, at: float) -> None:
        """It was due, and there was no room for it until the end."""
        moment = self._moment(at)
        call, _ = self._drawing.next(self._names[client], moment.conflict)
        sender, now = self._senders[client], time.time()
        record = ClientRecord(
            client=sender.client,
            process=self._process,
            number=0,
            invocation="",
            object=call.object,
            method=call.method,
            kind="async",
            node=sender.home.node,
            intended=moment.intended,
            sent=now,
            done=now,
            status=NOT_SENT,
            detail=f"{self._most} calls were under way",
            phase=moment.phase,
            conflict=moment.conflict,
            ucast=moment.ucast,
            workload=self._plan.workload,
        )
        self._sink(record)

    # closed loop

    async def _client(self, i: int) -> None:
        mine = self._process + i * self._plan.processes  # among those of all processes
        await asyncio.sleep(max(0.0, self._plan.ramp * mine / self._plan.clients - self._clock.now()))
        while not self.stopped and (at := self._clock.now()) < self._plan.total:
            over = asyncio.Event()
            self._send(i, at, "sync", lambda over=over: self._answered(over))  # type: ignore[misc]  # mypy: a default
            await over.wait()
            sender = self._senders[i]
            if sender.home.full or not sender.home.ready:
                await asyncio.sleep(0.001)

    def _answered(self, over: asyncio.Event) -> None:
        self.in_flight -= 1
        over.set()

    # both

    def _send(self, client: int, at: float, kind: Kind, after: Callable[[], None]) -> None:
        moment = self._moment(at)
        call, oneway = self._drawing.next(self._names[client], moment.conflict)
        self.in_flight += 1
        self._senders[client].send(call, "oneway" if oneway else kind, moment, self._sink, after)

    def _moment(self, at: float) -> Moment:
        ways = self._plan.ways
        return Moment(
            self._clock.unix(at),
            "warmup" if at < self._plan.before else "run",
            self._plan.conflict_at(at),
            ways[0] if ways is not None else 0.0,
        )
