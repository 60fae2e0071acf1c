"""The file of P1 §2.3: read and write, here by block.

A write conflicts with a write and with a read of the same block. ``append``, ``truncate`` and ``length`` are about
the whole file: they have no key and meet every block. Two writes of the same block conflict even if nobody reads in
between: the last one stays.
"""

from framework import Object, conflict_matrix, method


@conflict_matrix(
    write=("write", "read", "append", "length"),
    append=("append", "read", "length"),
    truncate=("write", "read", "append", "length"),  # not itself: the shortest wins in any order
)
class File(Object):
    """Blocks from 0; one that was never written is empty."""

    def __init__(self) -> None:
        self.blocks: dict[int, bytes] = {}

    @method(key="block")
    def write(self, block: int, data: bytes) -> None:
        if block < 0:
            raise ValueError(f"there is no block {block}")
        self.blocks[block] = data

    @method(key="block", readonly=True)
    def read(self, block: int) -> bytes:
        return self.blocks.get(block, b"")

    @method
    def append(self, data: bytes) -> int:
        """The number of the new block, after all others."""
        block = self._end()
        self.blocks[block] = data
        return block

    @method
    def truncate(self, blocks: int) -> None:
        """Keep the first ``blocks`` blocks."""
        self.blocks = {block: data for block, data in self.blocks.items() if block < blocks}

    @method(readonly=True)
    def length(self) -> int:
        """In blocks."""
        return self._end()

    def _end(self) -> int:
        return max(self.blocks, default=-1) + 1
