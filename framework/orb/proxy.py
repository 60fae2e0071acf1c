"""Proxies and the names a caller uses: the same for clients and for methods that call other objects.

An engine carries out acts (``home.Home`` for a client, ``performance.Performance`` for an instance); a face turns
what a user types into acts. Whether a face waits or gives something to await is decided in one place, ``_run``.
"""

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, overload

import msgspec

from framework.com.messages import Kind, Transmission
from framework.com.receipt import CREC, DREC, SREC, Receipt, quorum, srec
from framework.declare import Declaration, Method, Object, declaration
from framework.declare.codec import CANNOT_WRITE
from framework.errors import BadRequest
from framework.ids import Replica
from framework.orb.limits import check_huge
from framework.orb.messages import Act, Ask
from framework.orb.outcome import Outcome, Reply, replies

_encode = msgspec.msgpack.Encoder().encode


class Engine(Protocol):
    """Carries out acts. Everything happens on the engine's loop."""

    async def call(self, act: Act) -> Outcome: ...
    async def send(self, act: Act) -> int: ...
    async def collect(self, number: int, receipt: Receipt | None, timeout: float | None) -> Outcome: ...


class Options(msgspec.Struct, frozen=True):
    timeout: float | None = None
    receipt: Receipt | None = None
    to: tuple[Replica, ...] = ()


USUAL = Options()


class Request:
    """A call that has not been sent: what ``ucast``, ``mcast`` and ``pcast`` take."""

    def __init__(self, name: str, method: str, declared: Method | None, args: Sequence[Any], named: dict[str, Any]):
        self.object = name
        self.method = declared
        self.what = f"{name}.{method}"
        check_huge(self.what, args, named)
        if declared is not None:  # a mistake is told here, before anything is sent
            args, named = declared.bind(*args, **named), {}
        try:
            self._ask = Ask(name, method, _encode(list(args)), _encode(named) if named else b"")
        except CANNOT_WRITE as error:
            raise BadRequest(f"{self.what}: an argument cannot be sent: {error}") from None

    def ask(self, to: Sequence[Replica] = ()) -> Ask:
        return msgspec.structs.replace(self._ask, to=tuple(to)) if to else self._ask


class Sent:
    """A transmission that is on its way. Wait for it with ``srec``, ``crec``, ``drec`` or ``quorum``."""

    def __init__(self, number: int, requests: Sequence[Request]) -> None:
        self.number = number
        self.what = " | ".join(r.what for r in requests)
        self.methods = {r.object: r.method for r in requests}


class Remote:
    """A method of an object somewhere. Call it, or ``submit``, ``oneway``, ``with_``, ``request``."""

    def __init__(self, face: "Face", name: str, method: str, declared: Method | None, options: Options = USUAL) -> None:
        self._face = face
        self._object = name
        self._name = method
        self._declared = declared
        self._options = options
        self.__doc__ = f"{name}.{method}"

    def __repr__(self) -> str:
        return f"<{self._object}.{self._name}>"

    def request(self, *args: Any, **named: Any) -> Request:
        return Request(self._object, self._name, self._declared, args, named)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._face.call(self.request(*args, **named), self._options)

    def submit(self, *args: Any, **named: Any) -> Any:
        """Asynchronous: a future of the result."""
        return self._face.submit(self.request(*args, **named), self._options)

    def oneway(self, *args: Any, **named: Any) -> Any:
        return self._face.oneway(self.request(*args, **named), self._options)

    def with_(
        self, *, timeout: float | None = None, receipt: Receipt | None = None, to: Sequence[str] | None = None
    ) -> "Remote":
        old = self._options
        places = tuple(map(Replica, to)) if to is not None else old.to
        new = Options(timeout if timeout is not None else old.timeout, receipt or old.receipt, places)
        return Remote(self._face, self._object, self._name, self._declared, new)


class Proxy:
    """An object somewhere. Its attributes are its methods."""

    def __init__(self, face: "Face", name: str, declared: Declaration | None) -> None:
        self._face = face
        self._name = name
        self._declared = declared

    def __repr__(self) -> str:
        return f"<{self._declared.name if self._declared else 'object'} {self._name}>"

    def __getattr__(self, method: str) -> Remote:
        if method.startswith("__"):
            raise AttributeError(method)
        found = self._declared.method(method) if self._declared is not None else None
        remote = self.__dict__[method] = Remote(self._face, self._name, method, found)
        return remote


class Face:
    """What a caller can do. ``_run`` waits for a coroutine, or gives it to be awaited."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        raise NotImplementedError

    def _later(self, work: Coroutine[Any, Any, Any]) -> Any:
        raise NotImplementedError

    @overload
    def object(self, cls: type[Object], name: str) -> Any: ...
    @overload
    def object(self, cls: str) -> Any: ...
    def object(self, cls: type[Object] | str, name: str | None = None) -> Any:
        """A proxy: of a class, whose signatures are then checked here, or by name alone."""
        return self._proxy(cls, name)

    def _proxy(self, cls: type[Object] | str, name: str | None) -> Any:
        if isinstance(cls, str):
            return Proxy(self, cls, None)
        if name is None:
            raise BadRequest(f'which {cls.__name__}? Give its name, too: object({cls.__name__}, "name")')
        return Proxy(self, name, declaration(cls))

    def call(self, request: Request, options: Options) -> Any:
        return self._run(self._called("sync", request, options))

    def submit(self, request: Request, options: Options) -> Any:
        return self._later(self._called("async", request, options))

    def oneway(self, request: Request, options: Options) -> Any:
        if request.method is not None and request.method.returns_value:
            raise BadRequest(f"{request.what} returns a value: call it, or submit it; one-way is for '-> None'")
        return self._run(self._sent("oneway", (request,), None, options))

    # ucast, mcast, pcast; srec, crec, drec, quorum

    def ucast(self, request: Request, to: str | None = None) -> Any:
        """One request, one replica. The receipt is taken later."""
        return self._run(self._sent("async", (request,), "ucast", Options(to=(Replica(to),) if to else ())))

    def mcast(self, request: Request, to: Sequence[str] = ()) -> Any:
        """One request, many replicas: all, or those named."""
        return self._run(self._sent("async", (request,), "mcast", Options(to=tuple(map(Replica, to)))))

    def pcast(self, *requests: Request) -> Any:
        """Different requests to different objects in one act; each goes to all replicas of its object."""
        return self._run(self._sent("async", requests, "pcast", Options()))

    def srec(self, sent: Sent, source: str | None = None, timeout: float | None = None) -> Any:
        """The reply of one replica: of the only one, or of ``source``."""
        return self._run(self._one(sent, srec(Replica(source)) if source else SREC, timeout))

    def drec(self, sent: Sent, timeout: float | None = None) -> Any:
        """The first reply."""
        return self._run(self._one(sent, DREC, timeout))

    def crec(self, sent: Sent, timeout: float | None = None) -> Any:
        """All replies."""
        return self._run(self._all(sent, CREC, timeout))

    def quorum(self, sent: Sent, r: int, timeout: float | None = None) -> Any:
        """The first replies, ``r`` of each object."""
        return self._run(self._all(sent, quorum(r), timeout))

    # the work itself

    async def _called(self, kind: Kind, request: Request, options: Options) -> Any:
        act = Act(kind, (request.ask(options.to),), None, options.receipt, True, options.timeout)
        outcome = await self._engine.call(act)
        return replies(outcome, {request.object: request.method}, request.what)[-1].value

    async def _sent(
        self, kind: Kind, requests: Sequence[Request], way: Transmission | None, options: Options
    ) -> Sent | None:
        parts = tuple(r.ask(options.to) for r in requests)
        number = await self._engine.send(Act(kind, parts, way, None, False, options.timeout))
        return Sent(number, requests) if kind != "oneway" else None

    async def _all(self, sent: Sent, receipt: Receipt | None, timeout: float | None) -> Sequence[Reply]:
        return replies(await self._engine.collect(sent.number, receipt, timeout), sent.methods, sent.what)

    async def _one(self, sent: Sent, receipt: Receipt, timeout: float | None) -> Reply:
        return (await self._all(sent, receipt, timeout))[-1]
