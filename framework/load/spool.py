"""The records of a client process, on their way to Parquet.

They go to disk four times a second, in a form that can be read up to its last whole piece (Arrow's stream format), and
become a Parquet part when there are enough of them: so a process that is killed loses what it did since then, and its
parent makes a part of what it left (``salvage``). A thread writes; who makes records waits only if it is far behind.
"""

import queue
import sys
import threading
from pathlib import Path

import pyarrow as pa

from framework.analytics.columns import CLIENT, ClientRecord, from_client_records
from framework.load.parts import ROWS, Parts

BEHIND = 64  # batches that wait for the disk at most

_END = None


class Spool:
    """``open-00003.arrows`` is what becomes ``part-00003.parquet``. Processes share the numbers out among them."""

    def __init__(self, directory: Path, process: int, processes: int, rows: int = ROWS) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.failed: OSError | None = None
        self.waits = 0  # times that a batch had to wait for the disk
        self.files = self.rows = 0
        self._directory = directory
        self._number = process
        self._every = processes
        self._most = rows
        self._queue: queue.Queue[list[ClientRecord] | None] = queue.Queue(BEHIND)
        self._thread = threading.Thread(target=self._run, name="records", daemon=True)
        self._thread.start()

    @property
    def full(self) -> bool:
        """It cannot take a batch now."""
        return self._queue.full()

    def put(self, records: list[ClientRecord]) -> None:
        """Waits while the disk is far behind."""
        if records and self.failed is None:
            self.waits += self._queue.full()
            self._queue.put(records)

    def close(self) -> None:
        """``files`` and ``rows`` say what there is. OSError if something could not be written."""
        self._queue.put(_END)
        self._thread.join()
        if self.failed is not None:
            raise self.failed

    def _run(self) -> None:
        try:
            while self._one_part():
                pass
        except OSError as error:
            self.failed = error
            while self._queue.get() is not _END:
                pass  # nobody waits for a place

    def _one_part(self) -> bool:
        """Until there is enough for a part, or the end."""
        rows = 0
        path = self._directory / f"open-{self._number:05d}.arrows"
        with path.open("wb") as file, pa.ipc.new_stream(file, CLIENT) as stream:
            while rows < self._most:
                batch = self._queue.get()
                if batch is _END:
                    break
                stream.write_table(from_client_records(batch))
                file.flush()
                rows += len(batch)
        written = salvage(path)
        self.rows += written
        self.files += written > 0
        self._number += self._every
        return batch is not _END


def salvage(path: Path) -> int:
    """What can be read of a spool becomes a part; the rest was not written when its process ended. Its rows."""
    number = int(path.stem.partition("-")[2])
    if (path.parent / f"part-{number:05d}.parquet").exists():  # its process got that far
        path.unlink()
        return 0
    parts = Parts(path.parent, CLIENT, number, rows=sys.maxsize)
    try:
        with path.open("rb") as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                parts.write(pa.Table.from_batches([batch]))
    except (pa.ArrowInvalid, EOFError):
        pass  # cut off
    except OSError as error:
        if error.errno is not None:  # of the disk; Arrow says the same without a number of a piece that is cut off
            raise
    parts.close()
    path.unlink()
    return parts.rows
