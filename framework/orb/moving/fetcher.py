"""The side that has no state yet.

One stream after the other until all is there. A stream that breaks is followed by one that goes on where it was, from
the same donor; a donor that says no, or gives nothing several times, is followed by the next one, from the beginning.
"""

import asyncio
import errno
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from random import Random
from tempfile import gettempdir
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from framework.errors import BadMessage, BadRequest, Unavailable
from framework.ids import Node, Replica, object_of, replica
from framework.net.peers import HasNone, NotReached, SaysNo
from framework.net.wire.com_pb2 import FetchChunk, FetchWish
from framework.orb.moving.backoff import Backoffs, lacking
from framework.orb.moving.job import Fetched, Job

log = logging.getLogger(__name__)

SILENCE = 45.0  # seconds without a message after which a stream is given up; a donor waits less for its own capture
PATIENCE = 120.0  # seconds without a byte from anybody after which the caller is told
GOODBYE = 2.0  # seconds for telling the donor that it may forget the state
_BACKOFF = wait_random_exponential(multiplier=0.05, max=2.0)
_DEAR = wait_random_exponential(multiplier=0.5, max=60.0)  # where a donor has worked for nothing

Link = Callable[[Node, FetchWish], AsyncGenerator[FetchChunk, None]]


class _Again(Unavailable):
    """Nothing came this time."""


class _Dear(_Again):
    """A donor has taken its state, and it was of no use."""


class _Full(_Again):
    """No room for it: see ``Backoff``."""


class Fetcher:
    """``link``: ``Peers.fetch``. ``life`` of this node."""

    def __init__(
        self,
        node: Node,
        life: int,
        link: Link,
        directory: Path | None = None,
        patience: float = PATIENCE,
        silence: float = SILENCE,
        backoffs: Backoffs | None = None,
    ) -> None:
        self._node = node
        self._life = life
        self._link = link
        self._directory = directory
        self._patience = patience
        self._silence = silence
        self._backoffs = backoffs or Backoffs(Random(), asyncio.get_running_loop().time)
        self._jobs: dict[Replica, Job] = {}

    async def fetch(self, at: Replica, donors: Sequence[Node], held: bool = False) -> Fetched:
        """The state for the replica ``at`` of this node; ``held``: one of an earlier life of the donor. Unavailable if
        nobody has given a byte of it for a while; ask again, with the donors that there are by then."""
        if not donors:
            raise BadRequest(f"nobody is named who has the state of {at}")
        if at in self._jobs:
            raise BadRequest(f"the state of {at} is being fetched already")
        job = self._jobs[at] = Job(at, tuple(donors), self._directory, held)
        try:
            while True:
                attempts = AsyncRetrying(
                    wait=self._pause,
                    retry=retry_if_exception_type(_Again),
                    stop=lambda state: (state.seconds_since_start or 0.0) > self._patience,
                    before_sleep=self._told,
                    sleep=partial(self._sleep, at),
                    reraise=True,
                )
                fetched: Fetched | None = await attempts(self._one_stream, job)
                if fetched is not None:
                    await self._goodbye(job, fetched.ticket)
                    return fetched
        finally:
            job.reset()
            del self._jobs[at]

    async def luggage(self, at: Replica, donor: Node, audit: bytes = b"") -> bytes | None:
        """Only what comes with a state that another node holds of an earlier life, or the answer to a question about it
        (``audit``); None if it holds none."""
        source = replica(object_of(at), donor)
        wish = FetchWish(node=self._node, life=self._life, replica=source, held=True, audit=audit)
        try:
            async with asyncio.timeout(self._silence), aclosing(self._link(donor, wish)) as chunks:
                async for chunk in chunks:
                    if chunk.WhichOneof("what") == "header":
                        return bytes(chunk.header.part)
        except HasNone:
            return None
        except (NotReached, BadMessage) as error:  # it may have begun its own life a moment later
            raise Unavailable(f"what {source} holds is not known yet: {error}") from None
        except TimeoutError:
            raise Unavailable(f"{donor} was silent for {self._silence:g} s") from None
        raise Unavailable(f"{donor} does not say what {source} holds")

    def status(self) -> list[dict[str, Any]]:
        """For ``obo status``: plain data."""
        return [
            {"replica": at, "from": job.donor, "bytes": job.got, "total": job.total, "fault": job.fault}
            for at, job in self._jobs.items()
        ]

    # one stream

    async def _one_stream(self, job: Job) -> Fetched | None:
        """None: it broke, but something came, so there is hope. _Again: nothing came."""
        before, ticket = job.got, job.ticket
        try:
            return await self._read(job)
        except TimeoutError:  # an OSError, too
            job.fault, no = f"{job.donor} was silent for {self._silence:g} s", False
        except (NotReached, BadMessage) as error:
            job.fault, no = f"{job.donor}: {error}", isinstance(error, SaysNo)
        except OSError as error:
            raise self._no_disk(job, error) from error
        log.info("the state of %s: %s", job.replica, job.fault)
        if not no and job.got > before and ticket in ("", job.ticket):
            job.strikes = 0
            return None
        if not no and job.got and job.ticket != ticket:  # from the beginning, and that may come to nothing, too
            raise _Dear(f"the state of {job.replica} was begun anew: {job.fault}")
        job.strike(for_good=no)
        raise (_Dear if ticket or job.ticket else _Again)(f"the state of {job.replica} cannot be fetched: {job.fault}")

    async def _read(self, job: Job) -> Fetched | None:
        source = replica(object_of(job.replica), job.donor)
        wish = FetchWish(
            node=self._node, life=self._life, replica=source, ticket=job.ticket, offset=job.got, held=job.held
        )
        async with aclosing(self._link(job.donor, wish)) as chunks:
            while True:
                async with asyncio.timeout(self._silence):
                    chunk = await anext(chunks, None)
                what = None if chunk is None else chunk.WhichOneof("what")
                if chunk is None:
                    raise NotReached("the stream ended before the state did")
                if what == "header":
                    await asyncio.to_thread(job.begin, chunk.header)
                elif what == "piece":
                    await asyncio.to_thread(job.take, chunk.piece)
                elif what == "end":
                    return await self._whole(job, chunk)
                else:
                    raise BadMessage(f"{job.donor} sends a chunk of no known kind")

    async def _whole(self, job: Job, chunk: FetchChunk) -> Fetched:
        try:
            return job.finish(chunk.end)
        except BadMessage:
            await self._goodbye(job, job.ticket)  # let it take another one
            job.reset()
            raise

    async def _goodbye(self, job: Job, ticket: str) -> None:
        donor, source = job.donor, replica(object_of(job.replica), job.donor)
        wish = FetchWish(node=self._node, life=self._life, replica=source, ticket=ticket, done=True, held=job.held)
        try:
            async with asyncio.timeout(GOODBYE), aclosing(self._link(donor, wish)) as chunks:
                async for _ in chunks:
                    pass
        except (NotReached, TimeoutError):
            log.debug("%s was not told that %s is here; it will forget it by itself", donor, ticket)

    # between streams

    def _no_disk(self, job: Job, error: OSError) -> _Again:
        where, needed = Path(self._directory or gettempdir()), job.total or job.got
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        total = "" if job.total is None else f" of {job.total:,} bytes"
        job.reset()
        job.fault = f"cannot write to {where}: {error}"
        if full:
            job.fault = f"no space left in {where} for a state{total}: make room, or give the node another directory"
            log.error("%s: %s", job.replica, job.fault)
        self._backoffs.of(job.replica).failed(job.fault, lacking(where, needed) if full else None)
        return _Full(f"the state of {job.replica} cannot be fetched: {job.fault}")

    def _pause(self, state: RetryCallState) -> float:
        assert state.outcome is not None
        error = state.outcome.exception()
        return 0.0 if isinstance(error, _Full) else float((_DEAR if isinstance(error, _Dear) else _BACKOFF)(state))

    async def _sleep(self, at: Replica, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._backoffs.of(at).wait()

    def _told(self, state: RetryCallState) -> None:
        assert state.outcome is not None
        if state.attempt_number in (1, 4, 16, 64):
            log.warning("%s; trying again", state.outcome.exception())
