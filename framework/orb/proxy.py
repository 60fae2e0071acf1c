"""Proxies and the names a caller uses: the same for clients and for methods that call other objects.

An engine carries out acts (``home.Home`` for a client, ``nested.NestedCalls`` for an instance); a face turns what a
user types into acts. Whether a face waits or gives something to await is decided in three places: ``_now``, ``_later``
and ``_send``.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, overload

import msgspec

from framework.com.messages import Kind, Transmission
from framework.com.receipt import CREC, DREC, SREC, Receipt, Way, quorum, srec
from framework.declare import Declaration, Method, Object, declaration
from framework.declare.codec import CANNOT_WRITE, Codec
from framework.errors import BadRequest, NoSuchMethod, OboError
from framework.ids import Replica
from framework.orb import inputs
from framework.orb.limits import check_huge
from framework.orb.messages import Act, Ask
from framework.orb.outcome import Outcome, Reply, replies

_untyped = Codec(Any)

#: Told once what came of a call.
Settle = Callable[[Outcome | OboError], None]
#: Makes of an outcome what the caller gets; raises what he is to be told.
Finish = Callable[[Outcome], Any]


class Options(msgspec.Struct, frozen=True):
    timeout: float | None = None
    receipt: Receipt | None = None
    to: tuple[Replica, ...] = ()
    stale: bool = False
    independent: bool = False


USUAL = Options()


class Request:
    """A call that has not been sent: what ``ucast``, ``mcast`` and ``pcast`` take."""

    __slots__ = ("_ask", "method", "object")

    def __init__(self, name: str, method: str, declared: Method | None, args: tuple[Any, ...], named: dict[str, Any]):
        self.object = name
        self.method = declared
        check_huge(name, method, args, named)
        if declared is not None:  # a mistake is told here, before anything is sent
            self._ask = Ask(name, method, declared.packed(args, named))
            return
        try:
            self._ask = Ask(name, method, _untyped.pack(args), _untyped.pack(named) if named else b"")
        except CANNOT_WRITE as error:
            raise BadRequest(f"{name}.{method}: an argument cannot be sent: {error}") from None

    @property
    def what(self) -> str:
        return f"{self.object}.{self._ask.method}"

    def ask(self, to: Sequence[Replica] = ()) -> Ask:
        return msgspec.structs.replace(self._ask, to=tuple(to)) if to else self._ask

    def value(self, outcome: Outcome) -> Any:
        responses, method = outcome.responses, self.method
        if outcome.complete and method is not None and responses[-1].status == "ok":
            return method.unpack_result(responses[-1].body)
        return replies(outcome, {self.object: self.method}, self.what)[-1].value


class Sent:
    """A transmission that is on its way. Wait for it with ``srec``, ``crec``, ``drec`` or ``quorum``."""

    def __init__(self, number: int, requests: Sequence[Request]) -> None:
        self.number = number
        self.what = " | ".join(r.what for r in requests)
        self.methods = {r.object: r.method for r in requests}

    def all(self, outcome: Outcome) -> Sequence[Reply]:
        return replies(outcome, self.methods, self.what)

    def one(self, outcome: Outcome) -> Reply:
        return self.all(outcome)[-1]


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
        return self._face.call(Request(self._object, self._name, self._declared, args, named), self._options)

    def submit(self, *args: Any, **named: Any) -> Any:
        """Asynchronous: a future of the result. It is sent at once."""
        return self._face.submit(Request(self._object, self._name, self._declared, args, named), self._options)

    def oneway(self, *args: Any, **named: Any) -> Any:
        return self._face.oneway(Request(self._object, self._name, self._declared, args, named), self._options)

    def with_(
        self,
        *,
        timeout: float | None = None,
        receipt: Receipt | None = None,
        to: Sequence[str] | None = None,
        stale: bool | None = None,
        independent: bool | None = None,
    ) -> "Remote":
        """``stale``: a readonly method on the replica of the home node, which may be behind others; also where too few
        members of the group are heard. ``independent``: in a method or a transaction, what this call does stays done
        whatever becomes of that."""
        old, what = self._options, f"{self._object}.{self._name}"
        new = Options(
            old.timeout if timeout is None else inputs.seconds(timeout, f"{what}: timeout"),
            old.receipt if receipt is None else inputs.receipt(receipt, what),
            old.to if to is None else inputs.replicas(to, self._object, what),
            old.stale if stale is None else inputs.stale(stale, self._declared, what),
            old.independent if independent is None else bool(independent),
        )
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
        if not method.isidentifier():
            raise NoSuchMethod(f"{self._name}: {method!r:.80} is no name of a method")
        remote = self.__dict__[method] = Remote(self._face, self._name, method, found)
        return remote


class Face:
    """What a caller can do."""

    def _now(self, start: Callable[[Settle], int], finish: Finish) -> Any:
        """Start a call and wait for it; or something to await that does."""
        raise NotImplementedError

    def _later(self, start: Callable[[Settle], int], finish: Finish) -> Any:
        """Start a call; a future of it."""
        raise NotImplementedError

    def _send(self, act: Act, finish: Callable[[int], Any]) -> Any:
        """Send what is received later or never; or something to await that does."""
        raise NotImplementedError

    #: Start a call that is settled when it is received.
    _begin: Callable[[Act, Settle], int]
    #: Receive what was sent.
    _collect: Callable[[int, Receipt | None, float | None, Settle], int]

    @overload
    def object(self, cls: type[Object], name: str) -> Any: ...
    @overload
    def object(self, cls: str) -> Any: ...
    def object(self, cls: type[Object] | str, name: str | None = None) -> Any:
        """A proxy: of a class, whose signatures are then checked here, or by name alone."""
        return self._proxy(cls, name)

    def _proxy(self, cls: type[Object] | str, name: str | None) -> Any:
        if isinstance(cls, str):
            if name is not None:
                raise BadRequest(f'object("{cls}", {name!r:.80}): give a class and a name, or the name alone')
            return Proxy(self, inputs.object_name(cls, None), None)
        if not isinstance(cls, type) or not issubclass(cls, Object):
            raise BadRequest(f"object({cls!r:.80}): give a class that is an Object and a name, or a name alone")
        return Proxy(self, inputs.object_name(name, cls), declaration(cls))

    def call(self, request: Request, options: Options) -> Any:
        act = _act("sync", request, options)
        return self._now(partial(self._begin, act), request.value)

    def submit(self, request: Request, options: Options) -> Any:
        act = _act("async", request, options)
        return self._later(partial(self._begin, act), request.value)

    def oneway(self, request: Request, options: Options) -> Any:
        if request.method is not None and request.method.returns_value:
            raise BadRequest(f"{request.what} returns a value: call it, or submit it; one-way is for '-> None'")
        if options.stale:
            raise BadRequest(f"{request.what}: a one-way call is no read: leave out stale=True")
        act = Act("oneway", (request.ask(options.to),), None, None, False, options.timeout)
        return self._send(msgspec.structs.replace(act, independent=True) if options.independent else act, _nothing)

    # ucast, mcast, pcast; srec, crec, drec, quorum

    def ucast(self, request: Request, to: str | None = None, independent: bool = False) -> Any:
        """One request, one replica. The receipt is taken later. ``independent``: a transaction of its own."""
        return self._transmit((request,), "ucast", None if to is None else (to,), independent)

    def mcast(self, request: Request, to: Sequence[str] | None = None, independent: bool = False) -> Any:
        """One request, many replicas: all, or those named."""
        return self._transmit((request,), "mcast", to, independent)

    def pcast(self, *requests: Request, independent: bool = False) -> Any:
        """Different requests to different objects in one act; each goes to all replicas of its object."""
        return self._transmit(requests, "pcast", None, independent)

    def _transmit(
        self, requests: Sequence[Request], way: Transmission, to: Sequence[str] | None, independent: bool
    ) -> Any:
        for request in requests:
            if not isinstance(request, Request):
                raise inputs.no_request(request, way)
        if len(requests) != 1:
            inputs.one_of_each([r.object for r in requests])
        places = () if to is None else inputs.replicas(to, requests[0].object, way)
        act = Act(
            "async", tuple(r.ask(places) for r in requests), way, None, False, None, independent=bool(independent)
        )
        return self._send(act, lambda number: Sent(number, requests))

    def srec(self, sent: Sent, source: str | None = None, timeout: float | None = None) -> Any:
        """The reply of one replica: of the only one, or of ``source``."""
        receipt = SREC
        if source is not None and isinstance(sent, Sent):
            receipt = srec(inputs.replica(source, tuple(sent.methods), "srec"))
        return self._replies("srec", sent, receipt, timeout, Sent.one)

    def drec(self, sent: Sent, timeout: float | None = None) -> Any:
        """The first reply."""
        return self._replies("drec", sent, DREC, timeout, Sent.one)

    def crec(self, sent: Sent, timeout: float | None = None) -> Any:
        """All replies."""
        return self._replies("crec", sent, CREC, timeout, Sent.all)

    def quorum(self, sent: Sent, r: int, timeout: float | None = None) -> Any:
        """The first replies, ``r`` of each object."""
        return self._replies("quorum", sent, quorum(inputs.count(r)), timeout, Sent.all)

    def _replies(
        self, way: Way, sent: Sent, receipt: Receipt, timeout: float | None, finish: Callable[[Sent, Outcome], Any]
    ) -> Any:
        if not isinstance(sent, Sent):
            raise inputs.not_sent(sent, way)
        limit = inputs.seconds_or_none(timeout, f"{way}: timeout")
        return self._receive(sent, receipt, limit, lambda outcome: finish(sent, outcome))

    def _receive(self, sent: Sent, receipt: Receipt | None, timeout: float | None, finish: Finish) -> Any:
        return self._now(lambda settle: self._collect(sent.number, receipt, timeout, settle), finish)


def _act(kind: Kind, request: Request, options: Options) -> Act:
    act = Act(kind, (request.ask(options.to),), None, options.receipt, True, options.timeout, options.stale)
    return msgspec.structs.replace(act, independent=True) if options.independent else act


def _nothing(number: int) -> None:
    return None
