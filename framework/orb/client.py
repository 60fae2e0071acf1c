"""``connect`` and ``AsyncOrb``: where a program meets the objects.

    with connect("localhost:7401,localhost:7402") as orb:
        bank = orb.object(Bank, "bank")
        bank.deposit("ann", 5)

    async with AsyncOrb("localhost:7401,localhost:7402") as orb:
        bank = orb.object("bank")
        await bank.deposit("ann", 5)

Both have the same names. Proxies of ``Orb`` may be used from many threads; those of ``AsyncOrb`` belong to its loop.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Literal, Never, Self, TypeVar, Unpack, overload

from framework.com.receipt import CREC, DREC, Receipt
from framework.declare import Object
from framework.errors import BadRequest
from framework.net import forks
from framework.net.security import Access, Credentials, client
from framework.orb import glance, inputs
from framework.orb.calling import joined
from framework.orb.config import split_address
from framework.orb.home import TIMEOUT, Home
from framework.orb.loops import new_loop
from framework.orb.messages import Act, Change, Look
from framework.orb.proxy import Finish, Request, Settle
from framework.orb.racing import Race
from framework.orb.transaction import ATTEMPTS, LIMIT, AsyncTransaction, Transaction, run, run_async
from framework.orb.waits import Latch, LoopFuture, ThreadFuture
from framework.orb.ways import AsyncWays, Success, Ways

R = TypeVar("R")
T = TypeVar("T", bound=Object)

#: Receipts for ``with_(receipt=...)``; without one a call takes a majority.
ALL: Receipt = CREC
FIRST: Receipt = DREC


def quorum(r: int) -> Receipt:
    """``r`` replies of each object."""
    return Receipt("quorum", inputs.count(r))


class Orb(Ways):
    """Objects for a program of threads. Made by ``connect``."""

    def __init__(self, addresses: str | Sequence[str], timeout: float = TIMEOUT, **access: Unpack[Access]) -> None:
        forks.check()
        places = parse_addresses(addresses)
        timeout = inputs.seconds(timeout, "connect: timeout")
        credentials = client(access, places)
        self._loop = _background()
        self._home: Home = self._run(_made(places, timeout, credentials))
        self._begin = self._home.begin
        self._collect = self._home.collect
        self._closed = False
        try:
            self._run(self._home.reached())
        except BaseException:
            self.close()
            raise

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        if threading.current_thread() is _thread:
            work.close()
            _refuse_here()
        if forks.cut_off():
            work.close()
            forks.check()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _now(self, start: Callable[[Settle], int], finish: Finish) -> Any:
        if threading.current_thread() is _thread:
            _refuse_here()
        latch = Latch()
        number = start(latch.settle)
        try:
            outcome = latch.get()
        except BaseException:  # Ctrl-C, for example
            self._home.cancel(number)
            raise
        return finish(outcome)

    def _later(self, start: Callable[[Settle], int], finish: Finish) -> "Future[Any]":
        future = ThreadFuture(finish, self._home.cancel)
        future.number = start(future.settle)
        return future

    def _send(self, act: Act, finish: Callable[[int], Any]) -> Any:
        if not self._home.ready or self._home.full:
            self._run(self._home.room())
        return finish(self._home.send(act))

    @overload
    def object(self, cls: type[T], name: str) -> T: ...
    @overload
    def object(self, cls: str) -> Any: ...
    def object(self, cls: type[T] | str, name: str | None = None) -> Any:
        """A proxy: typed by a class, or by name alone."""
        return self._proxy(cls, name)

    def transaction(self, timeout: float = LIMIT) -> Transaction:
        """``with orb.transaction():`` calls inside are done whole, or not at all (docs/transactions.md)."""
        return Transaction(self, self._home, timeout)

    @property
    def in_transaction(self) -> bool:
        """Is this thread inside of such a block?"""
        found = joined.get()
        return found is not None and found.has(self._home)

    def _voted(self, timeout: float) -> Transaction:
        return Transaction(self, self._home, timeout, votes=True)

    def run_transaction(self, fn: "Callable[[Orb], R]", attempts: int = ATTEMPTS, timeout: float = LIMIT) -> R:
        """``fn(orb)`` in a transaction; again, after a pause, when that was aborted by others."""
        return run(self, fn, attempts, timeout)

    def _wholly(self, act: Callable[[], R]) -> R:
        return act() if joined.get() is not None else self.run_transaction(lambda _: act())

    def _race(self, requests: Sequence[Request]) -> Success:
        if self.in_transaction:
            return super()._race(requests)
        return self._run(Race(_face_of(self._home), requests, LIMIT).run())

    def _by_votes(self, act: Callable[[], R]) -> R:
        if joined.get() is not None:
            return super()._by_votes(act)
        return run(self, lambda _: act(), ATTEMPTS, LIMIT, votes=True)

    def look(self, what: Literal["objects", "status"]) -> Any:
        """What the home node says about the objects, or about itself."""
        return self._run(self._home.look(what))

    @property
    def home(self) -> str:
        """The name of the home node; empty while there is none."""
        return self._home.node

    def close(self) -> None:
        """End the connection. In a child of this process it does nothing: the connection is the parent's."""
        if not self._closed:
            self._closed = True
            if not forks.cut_off():
                self._run(self._home.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(addresses: str | Sequence[str], timeout: float = TIMEOUT, **access: Unpack[Access]) -> Orb:
    """Connect to the first of these nodes that can be reached; the others are for fail-over.

    ``timeout`` is the deadline, in seconds, of calls that do not say otherwise. For a secured cluster give
    ``credentials``, a directory, or ``token``, ``ca``, ``cert`` and ``key`` one by one (docs/security.md)."""
    return Orb(addresses, timeout, **access)


def ask_node(address: str, question: Look | Change, timeout: float, **access: Unpack[Access]) -> Any:
    """One question to this very node, also if it is not a member of the group or takes no calls."""
    credentials = client(access, parse_addresses(address))
    return in_background(glance.ask(address, question, credentials, timeout))


def in_background(work: Coroutine[Any, Any, R]) -> R:
    """What comes of it, on the loop that all clients of this process share."""
    if forks.cut_off():
        work.close()  # else Python complains that nobody awaited it
    return asyncio.run_coroutine_threadsafe(work, _background()).result()


class AsyncOrb(AsyncWays):
    """Objects for coroutines: the same names as ``Orb``, each to be awaited."""

    def __init__(self, addresses: str | Sequence[str], timeout: float = TIMEOUT, **access: Unpack[Access]) -> None:
        self._addresses = parse_addresses(addresses)
        self._credentials = client(access, self._addresses)
        self._timeout = inputs.seconds(timeout, "AsyncOrb: timeout")

    async def __aenter__(self) -> Self:
        self._use(Home(self._addresses, self._timeout, self._credentials))
        try:
            await self._home.reached()
        except BaseException:
            await self._home.close()
            raise
        return self

    def _use(self, home: Home) -> None:
        self._home = home
        self._begin = home.begin
        self._collect = home.collect

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not forks.cut_off():
            await self._home.close()

    async def _now(self, start: Callable[[Settle], int], finish: Finish) -> Any:
        return await self._later(start, finish)

    def _later(self, start: Callable[[Settle], int], finish: Finish) -> "asyncio.Future[Any]":
        future = LoopFuture(finish, self._home.cancel)
        future.number = start(future.settle)
        return future

    async def _send(self, act: Act, finish: Callable[[int], Any]) -> Any:
        if not self._home.ready or self._home.full:
            await self._home.room()
        return finish(self._home.send(act))

    @overload
    def object(self, cls: type[T], name: str) -> type[T]: ...
    @overload
    def object(self, cls: str) -> Any: ...
    def object(self, cls: type[T] | str, name: str | None = None) -> Any:
        """A proxy: typed by a class, or by name alone. For type checkers the proxy is the class itself: there a method
        taken from the class is one to be awaited (``declare/marks.py``); an object of it is what ``Orb`` gives."""
        return self._proxy(cls, name)

    def transaction(self, timeout: float = LIMIT) -> AsyncTransaction:
        """``async with orb.transaction():``"""
        return AsyncTransaction(self, self._home, timeout)

    def _voted(self, timeout: float) -> AsyncTransaction:
        return AsyncTransaction(self, self._home, timeout, votes=True)

    async def run_transaction(
        self, fn: "Callable[[AsyncOrb], Awaitable[R]]", attempts: int = ATTEMPTS, timeout: float = LIMIT
    ) -> R:
        """``await fn(orb)`` in a transaction; again, after a pause, when that was aborted by others."""
        return await run_async(self, fn, attempts, timeout)

    async def _wholly(self, act: Callable[[], Awaitable[R]]) -> R:
        return await (act() if joined.get() is not None else self.run_transaction(lambda _: act()))

    @property
    def in_transaction(self) -> bool:
        """Is this task inside of such a block?"""
        found = joined.get()
        return found is not None and found.has(self._home)

    async def _race(self, requests: Sequence[Request]) -> Success:
        if self.in_transaction:
            return await super()._race(requests)
        return await Race(self, requests, LIMIT).run()

    async def _by_votes(self, act: Callable[[], Awaitable[R]]) -> R:
        if joined.get() is not None:
            return await super()._by_votes(act)
        return await run_async(self, lambda _: act(), ATTEMPTS, LIMIT, votes=True)

    async def look(self, what: Literal["objects", "status"]) -> Any:
        return await self._home.look(what)

    @property
    def home(self) -> str:
        return self._home.node


def parse_addresses(addresses: str | Sequence[str]) -> list[str]:
    found: Sequence[object] = addresses.split(",") if isinstance(addresses, str) else addresses
    if not isinstance(found, Sequence) or not all(isinstance(a, str) for a in found):
        raise BadRequest(f'connect({addresses!r:.80}): write connect("host:port,host:port"), or a list of such texts')
    places = [a for a in (str(a).strip() for a in found) if a]
    if not places:
        raise BadRequest('no address: write connect("host:port,host:port")')
    for address in places:
        split_address(address, "connect")
    return places


def _refuse_here() -> Never:
    raise BadRequest("a synchronous call would block the loop it needs: use AsyncOrb in coroutines")


async def _made(addresses: list[str], timeout: float, credentials: Credentials) -> Home:
    return Home(addresses, timeout, credentials)


# All clients of a process share one loop in one thread: grpc.aio wants its objects in one place.
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_making = threading.Lock()


def _background() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    forks.check()  # the thread is not here, and may have held the lock
    with _making:
        if _loop is None or _thread is None or not _thread.is_alive():
            _loop = new_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="obo-client", daemon=True)
            _thread.start()
        return _loop


def _face_of(home: Home) -> AsyncOrb:
    """The same client, for coroutines on its loop."""
    orb = AsyncOrb.__new__(AsyncOrb)
    orb._use(home)
    return orb
