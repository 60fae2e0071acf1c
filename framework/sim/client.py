"""A client of hosted objects (framework.sim.host_objects): runs a script, call by call, through its home node."""

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Union

from framework.com.events import Collect, Outgoing, Received, Response, Submit
from framework.com.messages import Kind, Transmission
from framework.com.receipt import SREC, Receipt, majority
from framework.declare import Method
from framework.errors import BadRequest, RemoteError, Unavailable
from framework.ids import Node, Replica

if TYPE_CHECKING:
    from framework.sim.host_objects import Hosts
    from framework.sim.node import SimNode

#: Yield a call to wait for its receipt, a number to let time pass.
Script = Generator[Union["Call", float], None, None]


class Call:
    """What was asked, and what came back."""

    def __init__(
        self, number: int, kind: Kind, name: str, method: Method, values: tuple[Any, ...], receipt: Receipt | None
    ) -> None:
        self.number = number
        self.kind = kind
        self.object = name
        self.method = method
        self.values = values
        self.receipt = receipt
        self.responses: tuple[Response, ...] | None = None  # None: the receipt is not over

    def __str__(self) -> str:
        return f"{self.method.name}({', '.join(map(repr, self.values))})"

    def result(self) -> Any:
        """From the response that completed the receipt. RemoteError if the method raised."""
        if not self.responses:
            raise Unavailable(f"{self.object}.{self}: no response yet")
        last = self.responses[-1]
        if last.status != "ok":
            raise RemoteError(last.body.decode())
        return self.method.unpack_result(last.body)


class Client:
    def __init__(self, hosts: "Hosts", name: str, home: str, script: Callable[["Client"], Script]) -> None:
        if home not in hosts.world.nodes:
            raise BadRequest(f"client {name} has its home on {home!r}; nodes: {', '.join(hosts.world.nodes)}")
        self.hosts = hosts
        self.name = name
        self.home = Node(home)
        self.over = False
        self.calls: dict[int, Call] = {}
        self._awaited: Call | None = None
        self._script = script(self)

    def call(self, name: str, method: str, /, *args: Any, **options: Any) -> Call:
        """Synchronous: yield it right away. Options: ``to`` (replicas; else all, or one to read), ``receipt``."""
        return self._submit("sync", name, method, args, **options)

    def submit(self, name: str, method: str, /, *args: Any, **options: Any) -> Call:
        """Asynchronous: yield it when the answer is wanted."""
        return self._submit("async", name, method, args, **options)

    def oneway(self, name: str, method: str, /, *args: Any, **options: Any) -> Call:
        return self._submit("oneway", name, method, args, **options)

    def _submit(
        self,
        kind: Kind,
        name: str,
        method: str,
        args: tuple[Any, ...],
        to: Sequence[str] | None = None,
        receipt: Receipt | None = None,
    ) -> Call:
        declared = self.hosts.method(name, method)
        values = declared.bind(*args)
        where = tuple(map(Replica, to)) if to is not None else self._where(name, declared)
        if kind != "oneway" and receipt is None:
            receipt = SREC if len(where) == 1 else majority(len(where))
        number = len(self.calls) + 1
        call = self.calls[number] = Call(number, kind, name, declared, values, receipt)
        part = Outgoing(self.hosts.placed(name).name, declared.footprint(values), declared.pack(values), where)
        at_once = receipt if kind == "sync" else None
        way: Transmission = "ucast" if len(where) == 1 else "mcast"
        self._node().step(Submit(self.name, number, kind, way, (part,), at_once))
        return call

    def _where(self, name: str, method: Method) -> tuple[Replica, ...]:
        """A call goes to all replicas; one that only reads to one of them, at home if there is one."""
        every = self.hosts.placed(name).replicas
        if not method.readonly:
            return every
        here = tuple(r for r in every if r.endswith(f"@{self.home}"))
        return (here or every)[:1]

    def _node(self) -> "SimNode":
        return self.hosts.world.nodes[self.home]

    def go(self) -> None:
        """On to the next point where the script waits."""
        for wish in self._script:
            if not isinstance(wish, Call):
                self.hosts.world.after(wish, self.go)
                return
            if wish.receipt is not None and wish.responses is None:
                self._awaited = wish
                if wish.kind == "async":
                    self._node().step(Collect(self.name, wish.number, wish.receipt))
                return
        self.over = True

    def received(self, effect: Received) -> None:
        call = self.calls[effect.call]
        call.responses = effect.responses
        if self.hosts.on_received is not None:
            self.hosts.on_received(self, call)
        if call is self._awaited:
            self._awaited = None
            self.go()
