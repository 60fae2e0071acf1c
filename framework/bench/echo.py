"""The object that ``obo bench rpc`` calls: it counts, and gives back what it is given."""

from framework import Object, conflict_matrix, method


@conflict_matrix(
    echo=("count",),
    note=("count",),
    strict=("strict", "count"),
)
class Echo(Object):
    """``echo`` and ``note`` are compatible with everything that changes; ``strict`` conflicts with itself."""

    def __init__(self) -> None:
        self.calls = 0

    @method
    def echo(self, payload: bytes) -> bytes:
        self.calls += 1
        return payload

    @method
    def strict(self, payload: bytes) -> bytes:
        self.calls += 1
        return payload

    @method
    def note(self, payload: bytes) -> None:
        self.calls += 1

    @method(readonly=True)
    def count(self) -> int:
        return self.calls
