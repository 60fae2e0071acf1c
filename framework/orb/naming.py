"""From what a caller wishes to what the com layer sends: which class, which replicas, which receipt.

The same for clients and for instances that call other objects. A call goes by mcast to all replicas with receipt by
majority; a ``readonly`` one by ucast to one replica; both can be changed per call.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from framework.com.events import Outgoing, Submit
from framework.com.receipt import CREC, SREC, Receipt, majority
from framework.com.view import Placement
from framework.declare import Backed, Method
from framework.declare.codec import CANNOT_WRITE, Codec
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest, NoSuchObject
from framework.footprint import Footprint
from framework.ids import TRAN, ObjectName, Replica, Sid
from framework.orb.config import Config
from framework.orb.limits import check_depth, too_deep
from framework.orb.messages import Act, Ask, Envelope, encode
from framework.orb.own import METHODS

#: Which of several replicas reads.
Pick = Callable[[Sequence[Replica]], Replica]

#: The footprint of a call of an object whose replica here can tell, and what that stands on. None: nobody here can.
Judge = Callable[[ObjectName, Method, tuple[object, ...]], tuple[Footprint, int | None] | None]

_list = Codec(list[Any])
_map = Codec(dict[str, Any])


class Naming:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._backed = frozenset(n for n, c in config.classes.items() if issubclass(c, Backed))
        self._found: dict[tuple[str, str], tuple[Method, Placement]] = {}  # what is there; asked for with every call
        self.judge: Judge = lambda name, method, values: None

    def method(self, name: str, method: str) -> Method:
        """NoSuchObject, NoSuchMethod if there is none."""
        return (self._found.get((name, method)) or self._look_up(name, method))[0]

    def _look_up(self, name: str, method: str) -> tuple[Method, Placement]:
        placement = self.find(name)
        declared = METHODS.get(method) or self._config.declarations[placement.name].method(method)
        found = self._found[name, method] = declared, placement
        return found

    def find(self, name: str) -> Placement:
        """Where an object lives; NoSuchObject if there is none."""
        found = self._config.directory.objects.get(ObjectName(name)) if name != TRAN else None
        if found is None:
            raise NoSuchObject(f"no object {name!r}; {did_you_mean(name, self._config.declarations)}")
        return found

    def submit(
        self,
        caller: Sid | str,
        number: int,
        act: Act,
        time: float,
        deadline: float | None,
        pick: Pick,
        again: bool = False,
        whole: bool = False,
    ) -> Submit:
        """What the com layer is to send. Its deadline, in the node's time, is for the driver to set. ``again``: it may
        have been sent before, by another node. ``whole``: it is part of a transaction, so all replicas have to know
        what it has read, and hold it; unless the caller says which."""
        if not act.parts:
            raise BadRequest("a transmission without any request")
        way = act.transmission
        several = whole or way in ("mcast", "pcast")
        # Copies of one call must conflict with each other: then all replicas perform the same one. What each of
        # several nodes judges by itself may differ; "it conflicts with everything" does not.
        once = not again and isinstance(caller, str)
        parts = tuple([self._part(act, ask, several, time, deadline, pick, once) for ask in act.parts])
        if way is None:
            way = "pcast" if len(parts) > 1 else "ucast" if len(parts[0].replicas) == 1 else "mcast"
        receipt = (act.receipt or usual_receipt(parts)) if act.wait and act.kind != "oneway" else None
        return Submit(caller, number, act.kind, way, parts, receipt, independent=act.independent)

    def check_undoable(self, act: Act) -> None:
        """Inside of a client's transaction nothing may be changed that cannot be taken back: it would stay when the
        transaction is aborted, and nobody would be told."""
        for ask in act.parts:
            method, placement = self._found.get((ask.object, ask.method)) or self._look_up(ask.object, ask.method)
            if placement.loose and not method.readonly:
                kind = "in a store of its own" if placement.name in self._backed else "durable"
                raise BadRequest(
                    f"{method.where} changes {placement.name}, which is {kind} and takes no part in transactions: it "
                    "could not be undone. Call it before or after the block, or with_(independent=True)"
                )

    def stale(self, act: Act, time: float, deadline: float | None) -> Outgoing:
        """A read at the home node, which is not sent to anybody."""
        if len(act.parts) != 1 or act.kind == "oneway" or not act.wait:
            raise BadRequest("stale=True is for one call that waits for its result")
        ask = act.parts[0]
        method = self.method(ask.object, ask.method)
        if not method.readonly:
            raise BadRequest(f"{method.where} is not declared readonly: only what changes nothing can be stale")
        if ask.to or act.receipt is not None:
            raise BadRequest(f"{method.where}: stale=True reads at the home node: leave out to= and receipt=")
        return self._part(act, ask, False, time, deadline, lambda replicas: replicas[0], False)

    def _part(
        self, act: Act, ask: Ask, several: bool, time: float, deadline: float | None, pick: Pick, once: bool
    ) -> Outgoing:
        method, placement = self._found.get((ask.object, ask.method)) or self._look_up(ask.object, ask.method)
        if act.kind == "oneway" and method.returns_value:
            raise BadRequest(f"{method.where} returns a value: call it, or submit it; one-way is for '-> None'")
        packed, values = _values(method, ask)
        every, name = placement.replicas, placement.name
        to = ask.to
        if to:
            _check_places(act, method, to, every)
        elif len(every) == 1:
            to = every
        else:
            to = (pick(every),) if act.transmission == "ucast" or (method.readonly and not several) else every
        judges = once and name in self._backed and method.name not in METHODS
        judged = self.judge(name, method, values) if judges else None
        footprint, basis = judged or (method.footprint(values), None)
        return Outgoing(name, footprint, encode(Envelope(time, deadline, packed, basis)), to)


def _check_places(act: Act, method: Method, to: Sequence[Replica], every: Sequence[Replica]) -> None:
    unknown = [r for r in to if r not in every]
    if unknown:
        raise BadRequest(f"{method.where}: there is no replica {unknown[0]}; its replicas are {', '.join(every)}")
    left_out = [r for r in every if r not in to]
    if left_out and act.transmission is None and not method.readonly:
        raise BadRequest(
            f"{method.where} changes the object, and to= leaves out {', '.join(left_out)}: the replicas would differ. "
            "Leave out to=; or say by ucast or mcast that you mean it"
        )


def usual_receipt(parts: Sequence[Outgoing]) -> Receipt:
    """One of one; a majority of many; of several objects all."""
    if len(parts) > 1:
        return CREC
    count = len(parts[0].replicas)
    return SREC if count == 1 else _majority(count)


_majority = cache(majority)


def _values(method: Method, ask: Ask) -> tuple[bytes, tuple[object, ...]]:
    """The arguments as every replica will read them, and the values they will see."""
    if not ask.named:
        try:
            values = method.decode(ask.args)
        except CANNOT_WRITE:
            pass  # some are left to their defaults, or they are wrong: bind tells which
        else:
            check_depth(method.where, ask.args, values)
            return ask.args, values
    try:
        args = _list.unpack(ask.args)
        named = _map.unpack(ask.named) if ask.named else {}
    except RecursionError:
        raise BadRequest(too_deep(method.where)) from None
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"{method.where}: the arguments are no msgpack array: {error}") from None
    check_depth(method.where, ask.args, args)
    check_depth(method.where, ask.named, named.values())
    values = method.bind(*args, **named)
    return method.pack(values), values
