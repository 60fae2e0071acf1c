"""A wrong name is most often a typo: say which name was meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like ``name``, if one does at all."""
    found = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message: the nearest name, or else all there are."""
    names = sorted(known)
    found = nearest(name, names)
    if found is not None:
        return f"did you mean {found!r}?"
    return f"known: {', '.join(names)}" if names else "there is none"
