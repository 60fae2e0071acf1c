"""What is told of a message group that has left, for the trace."""

from framework.com.caller import Call, Caller, ClientSession
from framework.com.events import Submit
from framework.com.messages import Dest, Part, WireContext
from framework.com.telling import Sent
from framework.ids import Invocation


def sent(
    caller: Caller,
    event: Submit,
    call: Call,
    parts: tuple[Part, ...],
    first: Invocation,
    place: tuple[int, bool],  # its origin stamp, and whether it needs agreement
    context: WireContext,
    tran: Invocation | None,
) -> Sent:
    """In the order of the effect's fields."""
    included: list[str] = []
    if isinstance(caller, ClientSession):
        included, caller.included = caller.included, included
    return Sent(
        caller.sid,
        caller.cid,
        event.call,
        call.group,
        first,
        event.kind,
        event.transmission,
        tuple([Dest(at, seq) for at, seq in call.seqs.items()]),
        parts,
        *place,
        sum(len(marks) for _, marks in context),
        caller.client,
        event.receipt,
        (*[s.after for s in event.sessions], *included),
        call.waived,
        tran,
    )
