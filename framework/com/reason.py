"""Why a request waits at a replica: a text for people, and whom it waits for."""

from typing import NamedTuple

from framework.com.entry import Entry
from framework.com.messages import Mark
from framework.ids import Replica


class Reason(NamedTuple):
    text: str
    after: tuple[Mark, ...] = ()  # predecessors
    missing: tuple[Replica, ...] = ()  # destinations that have not said their word about its place
    behind: Entry | None = None  # a conflicting request

    def __str__(self) -> str:
        return self.text


def held(mark: Mark | None) -> Reason:
    return Reason(f"held for {mark}", () if mark is None else (mark,))


def no_agreement(entry: Entry) -> Reason:
    """Proposals are missing, or the word that all are known, or it waits for its predecessors' places."""
    missing = sorted(set(entry.dests) - set(entry.proposals or ()))
    text = f"no agreement yet, missing {missing or 'known'}"
    if not missing and entry.stamp is None:
        return Reason(text, tuple(entry.preds))
    return Reason(text, (), tuple(missing or sorted(set(entry.dests) - (entry.known or set()))))


def conflict(behind: Entry | None) -> Reason:
    return Reason(f"conflicts with {behind}", behind=behind)
