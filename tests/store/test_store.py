"""The store as its user sees it."""

import asyncio
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import framework.store.store
from framework.errors import BadRequest
from framework.ids import Node, Replica
from framework.store import Store, StoreBusy, StoreError, StoreFailed, WrongStore, segments, snapshots
from framework.store.disk import Disk
from framework.store.look import look

N1, BANK, CAR = Node("n1"), Replica("bank@n1"), Replica("car@n1")


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework.store.store, "PATIENCE_S", 0.05)


class SlowDisk(Disk):
    """Syncs only when it is let; counts them. ``error`` is what a sync raises."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.syncs = 0
        self.error: OSError | None = None

    def sync(self, fd: int) -> None:
        assert self.gate.wait(30)
        self.syncs += 1
        if self.error:
            raise self.error
        super().sync(fd)


# whose directory it is


def test_two_do_not_work_with_one_directory(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from framework.store import Store; Store(Path(sys.argv[1]), 'n1')"
    with Store(tmp_path / "s", N1):
        with pytest.raises(StoreBusy, match=f"s is in use by process {os.getpid()}: end that one, or name another"):
            Store(tmp_path / "s", N1)
        other = subprocess.run([sys.executable, "-c", code, tmp_path / "s"], capture_output=True, text=True)
        assert other.returncode and "StoreBusy" in other.stderr
        assert look(tmp_path / "s").in_use
    assert not look(tmp_path / "s").in_use
    Store(tmp_path / "s", N1).close()


def test_the_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "s", N1).close()
    for _ in range(2):  # the lock is given back
        with pytest.raises(WrongStore, match="s is the store of node n1, not of n2: name another one"):
            Store(tmp_path / "s", Node("n2"))
    Store(tmp_path / "s", N1).close()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "s", N1).close()
    meta = tmp_path / "s" / "meta"
    assert msgspec.json.decode(meta.read_bytes()) == {"store": "obo", "format": 1, "node": "n1"}
    for text, said in [
        (b'{"store":"obo","format":2,"node":"n1","new":1}', "format 2, written by a newer obo"),
        (b'{"store":"x","format":1,"node":"n1"}', "a store of 'x', not of obo"),
        (b'{"store":"obo"', "cannot be read"),
        (b"\xff", "cannot be read"),
    ]:
        meta.write_bytes(text)
        with pytest.raises(WrongStore, match=said):
            Store(tmp_path / "s", N1)
        with pytest.raises(WrongStore, match=said):
            look(tmp_path / "s")


def test_a_directory_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("all I have")
    with pytest.raises(WrongStore, match=r"no file meta, but thesis\.tex: this is no store"):
        Store(tmp_path, N1)
    with pytest.raises(WrongStore, match="is no store"):
        look(tmp_path)
    with pytest.raises(WrongStore, match="is no store"):
        look(tmp_path / "nowhere")
    with pytest.raises(StoreFailed, match="cannot be opened"):
        Store(tmp_path / "thesis.tex" / "s", N1)


def test_names_are_checked(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="node"):
        Store(tmp_path / "s", Node("../n1"))
    with Store(tmp_path / "s", N1) as store:
        for replica, said in [("bank@n2", "not on node n1"), ("bank", "not on node n1"), ("../x@n1", "object '../x'")]:
            with pytest.raises(BadRequest, match=said):
                store.journal(Replica(replica))
        store.journal(BANK)
        with pytest.raises(BadRequest, match="open already"):
            store.journal(BANK)


# the record of the node


def test_the_record_of_the_node_is_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        with Store(tmp_path / "s", N1) as store:
            assert store.remembered() is None
            await store.remember(b"one")
            await asyncio.gather(*(store.remember(b"%d" % i) for i in range(50)))
            assert store.remembered() == b"49"

    asyncio.run(main())
    with Store(tmp_path / "s", N1) as store:
        assert store.remembered() == b"49"
        assert look(tmp_path / "s").record_bytes == 2
    with pytest.raises(StoreError, match="closed"):
        store.remember_now(b"late")


def test_a_record_that_was_not_written_is_told_and_the_next_may_be(tmp_path: Path) -> None:
    disk = SlowDisk()
    with Store(tmp_path / "s", N1, disk=disk) as store:
        store.remember_now(b"one")
        disk.error = OSError(errno.ENOSPC, "No space left on device")
        with pytest.raises(StoreFailed, match=r"node was not written: .*No space"):
            store.remember_now(b"two")
        with pytest.raises(StoreFailed, match="No space"):
            asyncio.run(store.remember(b"two"))
        assert store.remembered() == b"one"
        disk.error = None
        store.remember_now(b"three")
    with Store(tmp_path / "s", N1) as store:
        assert store.remembered() == b"three"


# group commit


def test_what_waits_is_committed_together(tmp_path: Path) -> None:
    async def main() -> None:
        disk = SlowDisk()
        with Store(tmp_path / "s", N1, disk=disk) as store:
            bank, car = store.journal(BANK), store.journal(CAR)
            await asyncio.gather(bank.committed(bank.append(b"0")), car.committed(car.append(b"0")))
            disk.gate.clear()
            before = disk.syncs
            bank.append(b"first")  # this one is on its way, or waits with the others
            waiting = [j.committed(j.append(b"x" * 100)) for _ in range(500) for j in (bank, car)]
            await asyncio.sleep(0.05)
            assert not any(w.done() for w in waiting), "nothing is confirmed before it is synced"
            assert bank.backlog == 50_005
            disk.gate.set()
            await asyncio.gather(*waiting)
            assert disk.syncs - before <= 5, "1001 records"
            assert (bank.durable, car.durable, bank.backlog, car.backlog) == (502, 501, 0, 0)

    asyncio.run(main())


def test_a_failed_sync_is_told_to_all_who_wait_and_nothing_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        disk = SlowDisk()
        with Store(tmp_path / "s", N1, disk=disk) as store:
            bank = store.journal(BANK)
            await bank.committed(bank.append(b"safe"))
            disk.gate.clear()
            waiting = [bank.committed(bank.append(b"doomed")) for _ in range(3)]
            disk.error = OSError(errno.EIO, "Input/output error")
            disk.gate.set()
            results = await asyncio.gather(*waiting, return_exceptions=True)
            assert [type(r) for r in results] == [StoreFailed] * 3
            assert "records after 1 are not on disk" in str(results[0]) and "Input/output error" in str(results[0])
            assert len({id(r) for r in results}) == 3
            disk.error = None
            for call in (lambda: bank.append(b"more"), lambda: bank.wait(2), bank.hold):
                with pytest.raises(StoreFailed, match="Open the journal again"):
                    call()
            with pytest.raises(StoreFailed):
                await bank.committed(3)
            await bank.committed(1)
            again = store.journal(BANK)
            assert list(again.load().records) == [(1, b"safe")]
            await again.committed(again.append(b"more"))
        with Store(tmp_path / "s", N1) as store:
            assert [r for _, r in store.journal(BANK).load().records] == [b"safe", b"more"]

    asyncio.run(main())


def test_waiting_for_what_is_not_there(tmp_path: Path) -> None:
    disk = SlowDisk()
    with Store(tmp_path / "s", N1, disk=disk) as store:
        bank = store.journal(BANK)
        with pytest.raises(BadRequest, match="position 1 has not been written yet: the last one is 0"):
            bank.wait(1)
        disk.gate.clear()
        bank.append(b"x")
        with pytest.raises(StoreError, match="not on disk after"):
            bank.wait(1, timeout=0.01)
        disk.gate.set()
        bank.wait(1)
    with pytest.raises(StoreFailed, match="the store is closed"):
        bank.append(b"late")
    store.close()


# checkpoints


def test_a_checkpoint_is_taken_while_records_are_appended(tmp_path: Path) -> None:
    async def main() -> None:
        with Store(tmp_path / "s", N1, segment_bytes=1000) as store:
            bank = store.journal(BANK)
            assert bank.load().snapshot is None
            for i in range(100):
                await bank.committed(bank.append(b"%d" % i))
            midway = threading.Event()

            def chunks() -> Iterator[bytes]:
                yield b"state "
                assert midway.wait(30)
                yield b"at 100"

            files = len(segments.paths_in(tmp_path / "s/replicas/bank@n1"))
            taken = bank.checkpoint(chunks(), 100)
            for i in range(100, 120):
                await bank.committed(bank.append(b"%d" % i))
            assert not taken.done()
            midway.set()
            await taken
            assert len(segments.paths_in(tmp_path / "s/replicas/bank@n1")) < files
            assert bank.base == 100
            with pytest.raises(BadRequest, match="it must be from 100 to 120"):
                bank.checkpoint([], 99)
            with pytest.raises(BadRequest, match="it must be from 100 to 120"):
                bank.checkpoint([], 121)
            with pytest.raises(BadRequest, match="before the first append"):
                bank.load()

    asyncio.run(main())
    with Store(tmp_path / "s", N1) as store:
        loaded = store.journal(BANK).load()
        assert (loaded.base, loaded.position) == (100, 120)
        assert loaded.snapshot is not None and list(loaded.snapshot) == [b"state ", b"at 100"]
        assert list(loaded.records) == [(i + 1, b"%d" % i) for i in range(100, 120)]
        [seen] = look(tmp_path / "s").replicas
        assert (seen.base, seen.position, seen.tail) == (100, 120, "clean")


def test_a_snapshot_is_taken_only_of_what_is_confirmed(tmp_path: Path) -> None:
    async def main() -> None:
        disk = SlowDisk()
        with Store(tmp_path / "s", N1, disk=disk) as store:
            bank = store.journal(BANK)
            begun = threading.Event()

            def chunks() -> Iterator[bytes]:
                begun.set()
                yield b"state"

            disk.gate.clear()
            taken = bank.checkpoint(chunks(), bank.append(b"one"))
            await asyncio.sleep(0.05)
            assert not begun.is_set()
            disk.gate.set()
            await taken

    asyncio.run(main())


def test_a_checkpoint_that_fails_leaves_all_as_it_was(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise ZeroDivisionError

    async def main() -> None:
        with Store(tmp_path / "s", N1) as store:
            bank = store.journal(BANK)
            bank.append(b"one")
            with pytest.raises(ZeroDivisionError):
                await bank.checkpoint(chunks(), 1)
            await bank.committed(bank.append(b"two"))
        with Store(tmp_path / "s", N1) as store:
            assert [r for _, r in store.journal(BANK).load().records] == [b"one", b"two"]
            assert not snapshots.paths_in(tmp_path / "s/replicas/bank@n1")

    asyncio.run(main())


def test_opened_again_while_a_snapshot_is_under_way(tmp_path: Path) -> None:
    """It is waited for: it drops files that would be read."""

    async def main() -> None:
        disk = SlowDisk()
        with Store(tmp_path / "s", N1, disk=disk, segment_bytes=100) as store:
            bank = store.journal(BANK)
            for i in range(5):
                await bank.committed(bank.append(b"%d" % i))
            begun, midway = threading.Event(), threading.Event()

            def chunks() -> Iterator[bytes]:
                begun.set()
                assert midway.wait(30)
                yield b"at 5"

            taken = bank.checkpoint(chunks(), 5)
            assert await asyncio.to_thread(begun.wait, 30)
            disk.error = OSError(errno.EIO, "Input/output error")
            with pytest.raises(StoreFailed):
                await bank.committed(bank.append(b"doomed"))
            disk.error = None
            reopened = asyncio.create_task(asyncio.to_thread(store.journal, BANK))
            await asyncio.sleep(0.05)
            assert not reopened.done()
            midway.set()
            await taken
            loaded = (await reopened).load()
            assert (loaded.base, list(loaded.snapshot or []), list(loaded.records)) == (5, [b"at 5"], [])
            with pytest.raises(StoreFailed, match="Open the journal again"):
                await bank.checkpoint([b"of a journal that is not used any more"], 5)

    asyncio.run(main())


def test_a_state_from_elsewhere_comes_before_what_stands_on_it(tmp_path: Path) -> None:
    async def main() -> None:
        with Store(tmp_path / "s", N1) as store:
            bank = store.journal(BANK)
            bank.append(b"of the old life")
            ready = threading.Event()

            def chunks() -> Iterator[bytes]:
                assert ready.wait(30)
                yield b"of the donor"

            taken = bank.adopt(chunks())
            above = bank.committed(bank.append(b"on top"))
            with pytest.raises(BadRequest, match="being taken over already"):
                bank.hold()
            await bank.committed(1)
            await asyncio.sleep(0.05)
            assert not above.done() and bank.durable == 1
            ready.set()
            await taken
            await above

    asyncio.run(main())
    with Store(tmp_path / "s", N1) as store:
        loaded = store.journal(BANK).load()
        assert list(loaded.snapshot or []) == [b"of the donor"] and list(loaded.records) == [(2, b"on top")]


def test_a_state_from_elsewhere_that_does_not_come_fails_the_journal(tmp_path: Path) -> None:
    ready = threading.Event()

    def chunks() -> Iterator[bytes]:
        yield b"half"
        assert ready.wait(30)
        raise ConnectionError("the donor is gone")

    async def main() -> None:
        with Store(tmp_path / "s", N1) as store:
            bank = store.journal(BANK)
            await bank.committed(bank.append(b"of the old life"))
            taken = bank.adopt(chunks())
            above = bank.committed(bank.append(b"on top"))
            ready.set()
            with pytest.raises(StoreFailed, match="the snapshot at 1 was not written: the donor is gone"):
                await taken
            with pytest.raises(StoreFailed, match=r"records after 1 are not on disk: .*the donor is gone"):
                await above
            assert list(store.journal(BANK).load().records) == [(1, b"of the old life")]

    asyncio.run(main())


def test_who_gave_up_waiting_disturbs_nobody(tmp_path: Path) -> None:
    async def main(bank: framework.store.Journal, disk: SlowDisk) -> None:
        disk.gate.clear()
        gone = bank.committed(bank.append(b"x"))
        stays = bank.committed(bank.append(b"y"))
        gone.cancel()
        disk.gate.set()
        await stays

    disk = SlowDisk()
    with Store(tmp_path / "s", N1, disk=disk) as store:
        bank = store.journal(BANK)
        asyncio.run(main(bank, disk))

        async def leaves() -> None:
            disk.gate.clear()
            bank.committed(bank.append(b"z"))

        asyncio.run(leaves())  # its loop is closed when the sync is done
        disk.gate.set()
        bank.wait(bank.append(b"more"))
