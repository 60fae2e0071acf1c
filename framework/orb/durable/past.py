"""What a method sees beside its object when it is performed again."""

from collections.abc import Callable, Iterable

from framework.ids import Invocation
from framework.orb.durable.entries import Seen
from framework.orb.durable.past_calls import PastAsyncOrb, PastCalls, PastOrb
from framework.orb.given import Given
from framework.orb.messages import Envelope


class Past(Given):
    """The environment of such a method. ``meanwhile``: performs what came back here while it waited for this call."""

    def __init__(
        self,
        invocation: Invocation,
        envelope: Envelope,
        seen: Iterable[Seen],
        is_async: bool,
        meanwhile: Callable[[int, int], None],
    ) -> None:
        super().__init__(invocation, envelope)
        calls = PastCalls(seen, meanwhile)
        self.orb = PastAsyncOrb(calls) if is_async else PastOrb(calls)
