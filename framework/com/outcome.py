"""Outcomes of transactions, as tran tells them (framework.com.tran)."""

from typing import NamedTuple

from framework.com.ranges import Ranges
from framework.com.view import COMMIT
from framework.ids import Invocation

DECIDES = 0  # the number of the call that decides; others begin with 1


class Outcome(NamedTuple):
    commit: bool
    why: str = ""  # it was aborted by somebody else than its root

    @property
    def told(self) -> bytes:
        """As tran answers who asks."""
        return b"commit" if self.commit else b"abort " + self.why.encode()


def decided(invocation: Invocation) -> Invocation:
    """What is decided by this call of tran; whose vote it is."""
    length = len(invocation.path)
    while length > 1 and invocation.path[length - 1] == DECIDES:
        length -= 1
    return invocation.ancestor(length)


def whole(part: Invocation) -> Invocation:
    """What a part votes on."""
    return part.ancestor(len(part.path) - 1)


def vote_of(part: Invocation) -> Invocation:
    """Its call of tran. Not the one that decides on the part itself, if that is performed again as a root."""
    return Invocation(part.client, (*part.path, DECIDES, DECIDES))


def read(body: bytes) -> Outcome:
    """The answer of tran."""
    word, _, why = body.decode(errors="replace").partition(" ")
    return Outcome(word == COMMIT, why)


class Decided:
    """How transactions of clients ended, for good: a bit for each. One that is forgotten could be decided again, and
    otherwise (protocol.md §7.8)."""

    def __init__(self) -> None:
        self._by: dict[str, tuple[Ranges, Ranges]] = {}  # by client: committed, aborted

    def __bool__(self) -> bool:
        return bool(self._by)

    def add(self, name: Invocation, commit: bool) -> None:
        self._of(name.client)[not commit].add(name.path[0])

    def get(self, name: Invocation) -> Outcome | None:
        if len(name.path) != 1 or (both := self._by.get(name.client)) is None:
            return None
        number, (committed, aborted) = name.path[0], both
        return Outcome(True) if number in committed else Outcome(False) if number in aborted else None

    def export(self) -> tuple[tuple[str, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]], ...]:
        return tuple([(client, yes.wire(), no.wire()) for client, (yes, no) in self._by.items()])

    def adopt(self, decided: tuple[tuple[str, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]], ...]) -> None:
        for client, *told in decided:
            for ranges, more in zip(self._of(client), told, strict=True):
                for first, last in more:
                    for number in range(first, last + 1):
                        ranges.add(number)

    def _of(self, client: str) -> tuple[Ranges, Ranges]:
        return self._by.setdefault(client, (Ranges(), Ranges()))


class Outcomes:
    """What is known of outcomes: the last ones with their reasons, older ones as ``Decided`` has them."""

    def __init__(self) -> None:
        self.last: dict[Invocation, Outcome] = {}
        self.older = Decided()

    def __bool__(self) -> bool:
        return bool(self.last) or bool(self.older)

    def __len__(self) -> int:
        return len(self.last)

    def __contains__(self, name: Invocation) -> bool:
        return self.get(name) is not None

    def __getitem__(self, name: Invocation) -> Outcome:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: Invocation, outcome: Outcome) -> None:
        self.last[name] = outcome

    def get(self, name: Invocation) -> Outcome | None:
        return self.last.get(name) or (self.older.get(name) if self.older else None)

    def oldest(self) -> Invocation:
        return next(iter(self.last))

    def renew(self, name: Invocation) -> None:
        """It is still wanted: others go before it."""
        self.last[name] = self.last.pop(name)

    def forget(self, name: Invocation) -> None:
        outcome = self.last.pop(name)
        if len(name.path) == 1:
            self.older.add(name, outcome.commit)
