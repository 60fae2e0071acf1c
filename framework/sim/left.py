"""What is left of a world that is being shrunk (framework.sim.shrink): some of what its seed has drawn.

Each node, object, client, call and fault of a world has a name. What is not left is drawn as ever and then passed over,
so the rest stays as the seed made it. A world notes the names that it asks for: the first, whole run lists all that can
be taken away, and the world does not ask for the calls of a call that is gone.
"""

from collections.abc import Collection, Mapping


class Left:
    def __init__(self, names: Collection[str] | None = None) -> None:
        """``names``: of what is left; None: of all."""
        self._names = None if names is None else frozenset(names)
        self._seen: dict[str, object] = {}

    def has(self, name: str, meaning: object = "") -> bool:
        """``meaning``: for people, as text."""
        if self._names is not None and name not in self._names:
            return False
        self._seen.setdefault(name, meaning)
        return True

    @property
    def seen(self) -> Mapping[str, str]:
        """What was asked for and is left, with its meaning."""
        return {name: str(meaning) for name, meaning in self._seen.items()}
