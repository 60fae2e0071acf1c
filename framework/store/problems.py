"""What can be wrong with a store. Each error names the file, what is wrong with it and what to do."""

from pathlib import Path

from framework.errors import OboError


class StoreError(OboError):
    """Something is wrong with a store directory."""


class StoreBusy(StoreError):
    """Another process works with this directory."""


class WrongStore(StoreError):
    """The directory is of another node, of a newer format, or no store."""


class StoreFailed(StoreError):
    """The disk refused. Nobody can know what of the unconfirmed records a restart will find."""

    happened = None


class Damaged(StoreError):
    """What was once safely on disk is not there any more, or not as it was written."""

    def __init__(self, path: Path, offset: int, what: str, advice: str) -> None:
        super().__init__(f"{path}, byte {offset}: {what}. {advice}")
        self.path = path
        self.offset = offset


def damaged_replica(path: Path, offset: int, what: str) -> Damaged:
    return Damaged(
        path,
        offset,
        what,
        f"Move the directory {path.parent} away and start again: the replica then gets its state from its peers. "
        "If no peer has it, restore that directory from a backup",
    )
