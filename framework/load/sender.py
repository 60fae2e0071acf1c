"""A client of a run: one session with the cluster. It sends what was drawn and writes down what came of it."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from framework.analytics.columns import ClientRecord
from framework.com.messages import Kind, Transmission
from framework.declare.keys import OddKeyError, canonical
from framework.errors import BadRequest, DeadlineExceeded, OboError
from framework.load.draw import Call
from framework.load.found import Found
from framework.net.security import Credentials
from framework.orb.as_json import receipt_named
from framework.orb.home import Home
from framework.orb.messages import Act
from framework.orb.outcome import Outcome, replies
from framework.orb.proxy import Request

_DETAIL = 300  # letters of an error that are kept

#: Takes what came of a call.
Sink = Callable[[ClientRecord], None]


class Moment(msgspec.Struct, frozen=True):
    """When a call was due, and the settings at that time."""

    intended: float  # unix seconds
    phase: str
    conflict: float
    ucast: float


class Sender:
    """``number`` is that of the client, ``process`` that of its process."""

    def __init__(
        self,
        home: Home,
        found: Found,
        process: int,
        workload: str,
        timeout: float,
        receipt: str = "",
        prefix: str = "",
    ) -> None:
        self.home = home
        self.client = prefix + home.client
        self.under_way = 0
        self._found = found
        self._process = process
        self._workload = workload
        self._timeout = timeout
        self._receipt = receipt

    def send(self, call: Call, kind: Kind, moment: Moment, sink: Sink, after: Callable[[], None]) -> None:
        """Sends it at once. ``after`` is called when it is over and ``sink`` has its record."""
        parts = (call, *call.also)
        names = [(p.object, p.method) for p in parts]
        way = self._found.transmission(call.way, names)
        wish = receipt_named(call.receipt or self._receipt)
        receipt = "" if kind == "oneway" else str(wish) if wish is not None else self._found.receipt(way, names)
        sent = time.time()

        def over(number: int, status: str, detail: str) -> None:
            self.under_way -= 1
            record = ClientRecord(
                client=self.client,
                process=self._process,
                number=number,
                invocation=f"{self.client}/{number}",
                object="+".join(p.object for p in parts),
                method="+".join(dict.fromkeys(p.method for p in parts)),
                keys=_keys(parts),
                kind=kind,
                transmission=way,
                receipt=receipt,
                node=self.home.node,
                payload=sum(p.payload for p in parts),
                intended=moment.intended,
                sent=sent,
                done=max(time.time(), sent),
                status=status,
                detail=detail,
                phase=moment.phase,
                conflict=moment.conflict,
                ucast=moment.ucast,
                workload=self._workload,
            )
            sink(record)
            after()

        self.under_way += 1
        try:
            asks = tuple(Request(p.object, p.method, None, p.args, {}).ask() for p in parts)
            act = Act(kind, asks, _transmission(call.way), wish, kind != "oneway", self._timeout)
            if kind == "oneway":
                over(self.home.send(act), "ok", "")
                return
            number = 0

            def settle(outcome: Outcome | OboError) -> None:
                over(number, *judged(outcome))

            number = self.home.begin(act, settle)
        except OboError as error:
            over(0, type(error).__name__, str(error)[:_DETAIL])

    async def close(self) -> None:
        await self.home.close()


def judged(outcome: Outcome | OboError) -> tuple[str, str]:
    """Status and detail of a call. If one of several replies is an error, that is what is told."""
    if isinstance(outcome, OboError):
        return type(outcome).__name__, str(outcome)[:_DETAIL]
    try:
        for reply in replies(outcome, {}, "it"):
            if not reply.ok:
                raise reply.error
    except DeadlineExceeded as error:
        return type(error).__name__, str(error)[:_DETAIL]
    except OboError as error:
        return type(error).__name__, str(error)[:_DETAIL]
    return "ok", ""


def _transmission(way: str) -> Transmission | None:
    found: dict[str, Transmission | None] = {"": None, "ucast": "ucast", "mcast": "mcast", "pcast": "pcast"}
    if way not in found:
        raise BadRequest(f"way {way!r}: ucast, mcast or pcast")
    return found[way]


def _keys(parts: Sequence[Call]) -> tuple[str, ...]:
    """As footprints write them."""
    return tuple(dict.fromkeys(_key(key) for part in parts for key in part.keys))


def _key(key: Any) -> str:
    try:
        return canonical(key)
    except OddKeyError:
        return str(key)


def home_for(addresses: Sequence[str], first: int, timeout: float, credentials: Credentials) -> Home:
    """A session whose home is the ``first`` of the nodes; the others are for fail-over."""
    at = first % len(addresses)
    return Home([*addresses[at:], *addresses[:at]], timeout, credentials)
