"""One client of a node: its stream, while there is one, and its calls in flight."""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from framework.com.events import Accepted, Decide, Received, Response, Submit
from framework.com.events import Cancel as CancelEvent
from framework.com.events import Collect as CollectEvent
from framework.com.receipt import Receipt
from framework.errors import BadMessage, BadRequest, OboError, OutcomeUnknown, Unavailable
from framework.net.pace import Pace
from framework.net.wire.orb_pb2 import Packet
from framework.orb.begun import Begun
from framework.orb.limits import MARGIN, InFlight, Outbox, fitting
from framework.orb.messages import (
    Answer,
    Bye,
    Call,
    Cancel,
    Change,
    Collect,
    Going,
    Hello,
    Left,
    Look,
    Part,
    Ping,
    Refused,
    ToClient,
    Told,
    Welcome,
    encode,
    to_node,
)
from framework.orb.naming import usual_receipt
from framework.orb.spots import NOTHING
from framework.orb.who import Caller

if TYPE_CHECKING:
    from framework.orb.sessions import Sessions

log = logging.getLogger(__name__)

AT_ONCE = 32  # calls that are taken before answers have their turn
HOLD = 0.005  # seconds between two looks whether there is room for more
SIGN = 20  # looks after which a client that is held back is told that its node is there
KEEP = 60.0  # seconds for which a session waits for its client to come back


class Served:
    def __init__(self, sessions: "Sessions", name: str) -> None:
        self.name = name
        self.caller = Caller()
        self.in_flight = InFlight(sessions.total)
        self._unanswered: set[int] = set()  # submitted without a receipt, not left yet
        self._left = 0  # the last of them that has left, and is not told
        self._fresh = 0  # how many that are
        self._sessions = sessions
        self._usual: dict[int, Receipt] = {}
        self._trans = Begun(name, sessions.feed)
        self._due: dict[int, float | None] = {}  # of those that wait for a receipt
        self._out = Outbox()
        self._pace = Pace()
        self._bell = asyncio.Event()
        self._rung = False
        self._stream: asyncio.Future[str] | None = None
        self._told = False  # that it shall find another home
        self._going: asyncio.TimerHandle | None = None

    async def serve(self, context: Any, first: Sequence[bytes]) -> None:
        if self._stream is not None and not self._stream.done():
            self._stream.set_result("")
        if self._going is not None:
            self._going.cancel()
        mine = self._stream = asyncio.get_running_loop().create_future()
        self._told = False
        self._out.clear()
        host = self._sessions.host
        most, (name, formation, life) = self._sessions.limits.max_message, host.stay
        welcome = Welcome(name, host.version, most, host.refusal(), formation, life)
        await context.write(Packet(messages=[encode(welcome)]))
        reader = asyncio.ensure_future(self._read(context, first))
        writer = asyncio.ensure_future(self._write(context, mine))
        try:
            await asyncio.wait((reader, writer, mine), return_when=asyncio.FIRST_COMPLETED)
            fault = reader.exception() if reader.done() and not reader.cancelled() else None
            if isinstance(fault, BadMessage):
                log.warning("client %s is dropped: %s", self.name, fault)
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(fault))
            if mine.done() and mine.result():
                await context.abort(grpc.StatusCode.UNAVAILABLE, mine.result())
        finally:
            reader.cancel()
            writer.cancel()
            self._sessions.leave_first()  # what was read of a packet whose rest was not
            if self._stream is mine:
                self._stream = None
                self._going = asyncio.get_running_loop().call_later(KEEP, self._sessions.forget, self)

    def part(self, why: str) -> bool:
        """It shall find another home; until it has, its calls go on here. Not in the middle of a transaction, which is
        bound to this node. Is it still here?"""
        here = self._stream is not None and not self._stream.done()
        if here and not self._told and not self._trans.open:
            self._told = True
            self._say(Going(why))
        return here

    @property
    def has_gone(self) -> bool:
        """Was it told to, and has it no stream any more?"""
        return self._told and self._stream is None

    def close(self, why: str = "") -> None:
        if self._stream is not None and not self._stream.done():
            self._stream.set_result(why)

    async def _read(self, context: Any, messages: Sequence[bytes]) -> None:
        while True:
            called = False
            for count, data in enumerate(messages, 1):
                message = to_node(data)
                if isinstance(message, Call):  # by far the most
                    self._call(message)
                    called = True
                    if count % AT_ONCE == 0:
                        await asyncio.sleep(0)
                        await self._room()
                elif isinstance(message, Bye):
                    self._sessions.forget(self)
                    return
                else:
                    self._take(message)
            self._sessions.host.go()
            if called:  # who only looks is always answered
                await self._room()
            packet = await context.read()
            if packet is grpc.aio.EOF:
                return
            messages = packet.messages

    async def _room(self) -> None:
        """While the node has too much to do it reads no further: the stream holds the client back. One in a transaction
        is not held back: others may wait for its end."""
        host, looks = self._sessions.host, 0
        while host.crowded and not self._trans.open:
            if looks == 0:
                host.go()
            await asyncio.sleep(HOLD)
            looks += 1
            if looks % SIGN == 0:  # its question whether the node is there may be among what is not read
                self._say(Told(0, b""))

    async def _write(self, context: Any, mine: "asyncio.Future[str]") -> None:
        while self._stream is mine:
            if not self._out and not self._left:
                self._rung = False
                self._bell.clear()
                await self._bell.wait()
                continue
            await self._pace.gather(len(self.in_flight) + self._fresh)
            head = self._news()
            await context.write(Packet(messages=head + self._out.take(self._sessions.limits.max_message - MARGIN)))

    def _news(self) -> list[bytes]:
        """Before all answers: what the client is to keep. It includes all that was answered and has left."""
        session = self._sessions.host.session(self.name)
        left, self._left, self._fresh = self._left, 0, 0
        if session is None:
            return []
        return [encode(Left(left, session))]

    def _say(self, message: ToClient) -> None:
        if self._stream is not None:
            self._out.append(fitting(message, self._sessions.limits))
            self._ring()
            if self._out.size > self._sessions.limits.unread:
                log.warning("client %s is dropped: it does not read its answers", self.name)
                self.close()

    def _ring(self) -> None:
        if not self._rung:
            self._rung = True
            self._bell.set()

    def _take(self, message: Hello | Collect | Look | Cancel | Change | Ping) -> None:
        if isinstance(message, Hello):
            raise BadMessage("a second Hello")
        self._sessions.leave_first()
        try:
            if isinstance(message, Collect):
                self._collect(message)
            elif isinstance(message, Cancel):
                self._cancel(message.number)
            elif isinstance(message, Ping):
                self._say(Told(message.number, b""))
            elif isinstance(message, Change):
                self.caller.must_be_admin(f"obo {message.what}")
                self._sessions.host.change(message.what, message.node)
                self._say(Told(message.number, b""))
            else:
                self._say(Told(message.number, self._sessions.host.look(message.what)))
        except OboError as error:
            self._say(Refused(message.number, type(error).__name__, str(error)))

    def _call(self, message: Call) -> None:
        try:
            if not self._at_once(message):
                self._submit(message)
        except OboError as error:
            self._say(Refused(message.number, type(error).__name__, str(error)))

    def _at_once(self, message: Call) -> bool:
        """Most calls to an object with one replica, and most that only read: they are performed here and now."""
        sessions, number = self._sessions, message.number
        life = sessions.host.member
        if life is None or sessions.draining or number in self._usual or self.name in life.convoys.clients:
            return False
        self.in_flight.check(self.name, len(self._usual), sessions.limits)
        answer = life.spots.perform(self.name, self.caller.role != "read-only", message)
        if answer is None:
            return False
        if answer is NOTHING:
            self._left = number
            self._fresh += 1
            self._ring()
        else:
            self._say(Answer(number, True, (answer,)))
        return True

    def _submit(self, message: Call) -> None:
        sessions, act, number = self._sessions, message.act, message.number
        tran = act.tran
        if sessions.draining:
            raise Unavailable(f"{sessions.host.name} is stopping")
        self.in_flight.check(self.name, len(self._usual), sessions.limits)
        self.caller.check(act, sessions.naming)
        if act.stale:
            self._stale(message)
            return
        if tran is not None and tran.decide:
            self._decide(message, tran)
            return
        if why := sessions.host.refusal():
            raise Unavailable(why)
        naming, pick, whole = sessions.naming, sessions.pick, tran is not None
        submit = naming.submit(self.name, number, act, message.time, message.deadline, pick, message.again, whole)
        submit.sessions, submit.done = message.sessions, message.done
        if message.formation:
            self._check_lost(message, submit)
        if tran is not None:
            submit.tran, submit.votes = self._trans.part(act, tran, naming), tran.votes
        waits = submit.receipt is not None
        convoys = sessions.host.life.convoys
        if waits:
            submit.deadline = _until(act.timeout)
            if convoys.takes(message, submit):
                self._due[number] = submit.deadline
                self._usual.pop(number, None)
                self.in_flight.add(number)
                return
        else:
            self._unanswered.add(number)
        convoys.flush()  # what this client has sent before leaves before this
        if not self._feed(number, submit):
            self._unanswered.discard(number)
        elif waits:
            self._usual.pop(number, None)  # it was collected, and is repeated as a whole
            self.in_flight.add(number)
        elif act.kind != "oneway":
            self._usual[number] = usual_receipt(submit.parts)

    def _check_lost(self, message: Call, submit: Submit) -> None:
        """An object that has lost its state has lost the reply, too: nobody knows whether it had performed the call,
        and who has seen that."""
        changed = [part.object for part in submit.parts if not part.footprint.readonly]
        if lost := self._sessions.host.life.lost(message.formation, changed):
            raise OutcomeUnknown(
                f"the group was formed anew after this call was sent, and {', '.join(lost)} lost what was done before"
            )

    def _decide(self, message: Call, part: Part) -> None:
        self._sessions.leave_first()
        event = self._trans.decide(message, part, _until(message.act.timeout))
        if self._feed(message.number, event):
            self.in_flight.add(message.number)

    def _collect(self, message: Collect) -> None:
        usual = self._usual.get(message.number)
        if usual is None:
            raise BadRequest(f"call {message.number} has been received already, or was never sent")
        receipt = message.receipt or usual
        if self._feed(message.number, CollectEvent(self.name, message.number, receipt, _until(message.timeout))):
            del self._usual[message.number]
            self.in_flight.add(message.number)

    def _feed(self, number: int, event: Submit | CollectEvent | Decide) -> bool:
        """False: too few of the replicas are there now."""
        if isinstance(event, Decide) or event.receipt is not None:
            self._due[number] = event.deadline
        try:
            self._sessions.feed(event)
            return True
        except OboError as error:
            self._due.pop(number, None)
            # a receipt may ask for more replicas than there were when the call was sent
            few = isinstance(event, CollectEvent) and event.receipt == self._usual.get(number)
            if type(error) is not Unavailable and not (few and type(error) is BadRequest):
                raise
            self._say(Refused(number, Unavailable.__name__, str(error), True))
            return False

    def _cancel(self, number: int) -> None:
        self.in_flight.discard(number)
        self._due.pop(number, None)
        self._usual.pop(number, None)
        self._unanswered.discard(number)
        self._sessions.feed(CancelEvent(self.name, number))

    def received(self, effect: Received, why: str) -> None:
        self.in_flight.discard(effect.call)
        early = self.early(effect)
        self._due.pop(effect.call, None)
        if early:
            text = f"{self._sessions.host.name}: too few of the replicas that were asked are left for {effect.receipt}"
            error = OutcomeUnknown if effect.group is not None else Unavailable  # it has not left
            self._say(Refused(effect.call, error.__name__, text, True))
            return
        if not effect.complete:  # its deadline has passed; the com layer is busy with this effect
            asyncio.get_running_loop().call_soon(self._cancel, effect.call)
        self._say(Answer(effect.call, effect.complete, effect.responses, why))

    def early(self, effect: Received) -> bool:
        """Did the com layer give up before the deadline? Then replicas have departed that are needed."""
        due = self._due.get(effect.call)
        return not effect.complete and (due is None or asyncio.get_running_loop().time() < due)

    def accepted(self, effect: Accepted) -> None:
        """The answer of a call brings the session; a call without one at once needs a word of its own."""
        if effect.call in self._unanswered:
            self._unanswered.discard(effect.call)
            self._left = effect.call
            self._fresh += 1
            self._ring()

    def _stale(self, message: Call) -> None:
        """What the replica here has, in whatever state of affairs: nobody else is asked."""
        part = self._sessions.naming.stale(message.act, message.time, message.deadline)
        life, number = self._sessions.host.life, message.number
        at = life.local(part.object)
        self.in_flight.add(number)

        def read(ok: bool, body: bytes) -> None:
            self.in_flight.discard(number)
            self._say(Answer(number, True, (Response(at, "ok" if ok else "error", body),)))

        life.dispatch.read(at, part.footprint, part.args, read)


def _until(timeout: float | None) -> float | None:
    return None if timeout is None else asyncio.get_running_loop().time() + timeout
