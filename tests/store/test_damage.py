"""A torn end is cut off, with a warning; what was confirmed and is broken is refused, with file, offset and advice."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from framework.ids import Node, Replica
from framework.store import Damaged, Store, segments, snapshots
from framework.store.disk import Disk
from framework.store.frames import END, LONGEST, SnapshotHead, decode_head, encode_frame, seed_of
from framework.store.look import look

N1, BANK = Node("n1"), Replica("bank@n1")
CONFIRMED = [b"one", b"two", b"three"]
LAST_BATCH = [b"four", b"", b"six" * 9]


class Hasty(Disk):
    """These tests read what they wrote; no power is lost."""

    def sync(self, fd: int) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        pass


def opened(directory: Path, segment_bytes: int = 1 << 20) -> Store:
    return Store(directory, N1, disk=Hasty(), threads=False, segment_bytes=segment_bytes)


def write(directory: Path, *batches: list[bytes], segment_bytes: int = 1 << 20) -> Path:
    """Each batch is confirmed before the next. Returns the directory of the replica."""
    with opened(directory, segment_bytes) as store:
        journal = store.journal(BANK)
        for batch in batches:
            for record in batch:
                journal.append(record)
            store.writer.round()
    return directory / "replicas" / BANK


def read(directory: Path) -> list[bytes]:
    with opened(directory) as store:
        return [record for _, record in store.journal(BANK).load().records]


def refuse(directory: Path, path: Path, *expected: str) -> Damaged:
    """Also says so when somebody looks, and changes nothing."""
    before = {p: p.read_bytes() for p in path.parent.iterdir()}
    with opened(directory) as store, pytest.raises(Damaged) as caught:
        store.journal(BANK)
    text = str(caught.value)
    for part in (str(path), "byte", f"Move the directory {path.parent} away", "backup", *expected):
        assert part in text
    assert {p: p.read_bytes() for p in path.parent.iterdir()} == before
    [seen] = look(directory).replicas
    assert seen.problem == text and seen.tail == "damaged"
    return caught.value


def flip(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


# the end


SPOIL: dict[str, Callable[[bytes, int], bytes]] = {
    "cut": lambda data, at: data[:at],
    "zeros from here": lambda data, at: data[:at] + bytes(len(data) - at),
    "zeros, then more of them": lambda data, at: data[:at] + bytes(len(data) - at + 4096),
    "noise from here": lambda data, at: data[:at] + bytes(b ^ 0x55 for b in data[at:]),
    "one zero": lambda data, at: data[:at] + b"\0" + data[at + 1 :],
    **{f"bit {bit}": (lambda data, at, bit=bit: flip(data, at, bit)) for bit in (0, 3, 7)},  # type: ignore[misc]
}


@pytest.mark.parametrize("how", SPOIL)
def test_the_last_batch_may_be_spoilt_at_any_byte(tmp_path: Path, how: str) -> None:
    inside = write(tmp_path / "s", CONFIRMED)
    [path] = segments.paths_in(inside)
    safe = path.stat().st_size
    write(tmp_path / "s", LAST_BATCH)
    whole, lengths = path.read_bytes(), set()
    for at in range(safe, len(whole)):
        path.write_bytes(SPOIL[how](whole, at))
        records = read(tmp_path / "s")
        assert records[:3] == CONFIRMED
        assert records == (CONFIRMED + LAST_BATCH)[: len(records)]
        lengths.add(len(records))
        assert read(tmp_path / "s") == records, "cut once and for all"
    assert lengths >= {3, 4, 5}


def test_a_torn_end_is_cut_with_a_warning_and_written_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    inside = write(tmp_path / "s", CONFIRMED, LAST_BATCH)
    [path] = segments.paths_in(inside)
    path.write_bytes(path.read_bytes()[:-1])
    [seen] = look(tmp_path / "s").replicas
    assert seen.torn_bytes == 24 + 26 and "cut off" in seen.tail
    end = path.stat().st_size - seen.torn_bytes
    with caplog.at_level(logging.WARNING):
        write(tmp_path / "s", [b"other"])
    assert f"{path}: cut at byte {end}: the 50 bytes after record 5" in caplog.text
    assert read(tmp_path / "s") == [*CONFIRMED, b"four", b"", b"other"]
    [seen] = look(tmp_path / "s").replicas
    assert seen.tail == "clean" and not seen.problem


def test_pages_of_one_write_come_in_any_order(tmp_path: Path) -> None:
    """Whole records after a hole prove nothing if they were written together with it."""
    inside = write(tmp_path / "s", CONFIRMED)
    [path] = segments.paths_in(inside)
    safe = path.stat().st_size
    write(tmp_path / "s", LAST_BATCH)
    data = path.read_bytes()
    path.write_bytes(data[:safe] + bytes(10) + data[safe + 10 :])
    assert read(tmp_path / "s") == CONFIRMED


# the middle


def test_any_damaged_byte_before_the_last_batch_is_refused(tmp_path: Path) -> None:
    inside = write(tmp_path / "s", CONFIRMED)
    [path] = segments.paths_in(inside)
    safe = path.stat().st_size
    write(tmp_path / "s", LAST_BATCH)
    whole = path.read_bytes()
    for at in range(safe):
        path.write_bytes(flip(whole, at, at % 8))
        with opened(tmp_path / "s") as store, pytest.raises(Damaged):
            store.journal(BANK)
    path.write_bytes(flip(whole, safe - 1))
    refuse(tmp_path / "s", path, "record 3 is damaged or missing", "record 4 at byte", "says it was confirmed")


def test_a_file_that_is_missing_or_ends_early_is_refused(tmp_path: Path) -> None:
    inside = write(tmp_path / "s", *([b"%d" % i * 10] for i in range(12)), segment_bytes=150)
    paths = segments.paths_in(inside)
    assert len(paths) >= 4
    for path, where, what in [
        (paths[0], paths[1], "the file with record 1 is missing"),
        (paths[1], paths[2], f"the file before it, {paths[0].name}, ends with"),
    ]:
        data = path.read_bytes()
        path.unlink()
        refuse(tmp_path / "s", where, what)
        path.write_bytes(data)
    data = paths[1].read_bytes()
    for spoilt in (data[:-1], data + b"\0", data[:60]):
        paths[1].write_bytes(spoilt)
        refuse(tmp_path / "s", paths[1])
    paths[1].write_bytes(data)
    assert len(read(tmp_path / "s")) == 12


def test_a_file_of_another_history_is_refused(tmp_path: Path) -> None:
    """The same positions, another past: as when one file is taken from a backup."""
    mine = segments.paths_in(write(tmp_path / "s", *[[b"mine"]] * 12, segment_bytes=150))
    other = segments.paths_in(write(tmp_path / "t", *[[b"ours"]] * 12, segment_bytes=150))
    shutil.copy(other[1], mine[1])
    refuse(tmp_path / "s", mine[1], "comes from another history")


def test_a_file_of_another_replica_or_with_another_name_is_refused(tmp_path: Path) -> None:
    [mine] = segments.paths_in(write(tmp_path / "s", CONFIRMED))
    shutil.copy(mine, mine.with_name(f"{4:020}.journal"))
    refuse(tmp_path / "s", mine.with_name(f"{4:020}.journal"), "from record 1: it was renamed")
    mine.with_name(f"{4:020}.journal").rename(mine.with_name("x.journal"))
    refuse(tmp_path / "s", mine.with_name("x.journal"), "no file of a journal")
    mine.with_name("x.journal").unlink()
    (tmp_path / "s/replicas/car@n1").mkdir()
    shutil.copy(mine, tmp_path / "s/replicas/car@n1")
    with opened(tmp_path / "s") as store, pytest.raises(Damaged, match="this file is of bank@n1"):
        store.journal(Replica("car@n1"))


def test_a_newer_format_is_named(tmp_path: Path) -> None:
    [path] = segments.paths_in(write(tmp_path / "s", CONFIRMED))
    data = bytearray(path.read_bytes())
    data[8] = 2
    path.write_bytes(data)
    refuse(tmp_path / "s", path, "format 2, written by a newer obo")


# snapshots


@pytest.fixture
def with_snapshot(tmp_path: Path) -> Path:
    with opened(tmp_path / "s") as store:
        journal = store.journal(BANK)
        for record in CONFIRMED:
            journal.append(record)
        store.writer.round()
        journal.checkpoint_now([b"state", b"", b"more"], 3)
    return tmp_path / "s"


def test_any_damaged_byte_of_a_snapshot_is_refused(with_snapshot: Path) -> None:
    inside = with_snapshot / "replicas" / BANK
    [path] = snapshots.paths_in(inside)
    whole = path.read_bytes()
    for spoilt in [*(flip(whole, at, at % 8) for at in range(len(whole))), *(whole[:at] for at in range(len(whole)))]:
        path.write_bytes(spoilt)
        with opened(with_snapshot) as store, pytest.raises(Damaged):
            store.journal(BANK)
    path.write_bytes(whole + b"\0")
    refuse(with_snapshot, path, "does not end as it was written")
    path.write_bytes(flip(whole, len(whole) - 60))
    refuse(with_snapshot, path, "chunk 3 of the snapshot is damaged or missing")


def test_a_snapshot_with_the_end_of_another_is_refused(with_snapshot: Path) -> None:
    """Each frame is sound, the whole is not."""
    [path] = snapshots.paths_in(with_snapshot / "replicas" / BANK)
    whole = path.read_bytes()
    _, start = decode_head(whole, SnapshotHead)
    end = encode_frame(END, 4, 0, bytes(16), seed_of(whole[:start]))
    path.write_bytes(whole[: -len(end)] + end)
    refuse(with_snapshot, path, "does not end as it was written")


def test_what_a_snapshot_proves_confirmed_is_not_cut(with_snapshot: Path) -> None:
    """Even in the last batch."""
    [path] = segments.paths_in(with_snapshot / "replicas" / BANK)
    whole = path.read_bytes()
    path.write_bytes(flip(whole, len(whole) - 1))
    refuse(with_snapshot, path, "there is a snapshot of record 3")
    path.write_bytes(whole[:-29])
    refuse(with_snapshot, path, "record 3, which was confirmed")
    path.unlink()
    refuse(with_snapshot, path.with_name(f"{3:020}.journal"), "the file with record 4 is missing")


def test_a_record_of_the_node_that_is_damaged_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "s", N1) as store:
        store.remember_now(b"promised")
    path = tmp_path / "s" / "node"
    whole = path.read_bytes()
    places = range(len(whole))
    for spoilt in [*(flip(whole, at) for at in places), *(whole[:at] for at in places), whole * 2]:
        path.write_bytes(spoilt)
        with pytest.raises(Damaged, match="forget what it has promised"):
            Store(tmp_path / "s", N1)
        assert "forget" in look(tmp_path / "s").problem


def test_a_length_that_is_none_is_not_believed(tmp_path: Path) -> None:
    """Nor is memory asked for."""
    [path] = segments.paths_in(write(tmp_path / "s", CONFIRMED))
    path.write_bytes(path.read_bytes() + b"\xf1rec" + (LONGEST + 1).to_bytes(4, "little") + bytes(100))
    assert read(tmp_path / "s") == CONFIRMED
