"""The counter of P3 §2.2.

``increment`` and ``decrement`` are compatible: the sum does not tell their order. ``show`` conflicts with
both. The papers call conflict transitive; this counter shows that it is not: increment conflicts with show,
show with decrement, and yet increment is compatible with decrement (protocol.md §14.1).
"""

from framework import Object, conflict_matrix, method


@conflict_matrix(show=("increment", "decrement"))
class Counter(Object):
    def __init__(self) -> None:
        self.value = 0

    @method
    def increment(self, by: int = 1) -> None:
        # No result: the new value would tell the order, and increments would conflict.
        self.value += by

    @method
    def decrement(self, by: int = 1) -> None:
        self.value -= by

    @method(readonly=True)
    def show(self) -> int:
        return self.value
