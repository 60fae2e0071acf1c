"""A disk that is full: told, nothing confirmed is lost, and it goes on when there is room again."""

import asyncio
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from framework.ids import Node, Replica
from framework.store import Store, StoreFailed

N1, BANK = Node("n1"), Replica("bank@n1")
ROOM = 256 << 10


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of 256 KiB if we may mount one; else the calls are made to behave as on one."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", place], capture_output=True
        ).returncode
    )
    if not mounted:
        monkeypatch.setattr(os, "pwrite", as_if_small(place))
    yield place
    if mounted:
        subprocess.run(["umount", "--lazy", place], check=True)


def as_if_small(place: Path):  # type: ignore[no-untyped-def]
    real = os.pwrite

    def pwrite(fd: int, data: bytes, offset: int) -> int:
        room = ROOM - sum(p.stat().st_size for p in place.rglob("*") if p.is_file())
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data[:room], offset)

    return pwrite


def test_a_full_disk(small: Path) -> None:
    asyncio.run(fill(small))


@pytest.mark.skipif(os.geteuid() != 0, reason="the same as above if nothing can be mounted")
def test_a_full_disk_as_if(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", as_if_small(tmp_path))
    asyncio.run(fill(tmp_path))


async def fill(place: Path) -> None:
    ballast = place / "s" / "replicas" / BANK / "ballast"
    with Store(place / "s", N1, segment_bytes=30_000) as store:
        bank = store.journal(BANK)
        ballast.write_bytes(bytes(64 << 10))
        confirmed = await until_full(bank)
        with pytest.raises(StoreFailed, match="No space left"):
            bank.append(b"more")
        with pytest.raises(StoreFailed, match=r"node was not written: .*No space left"):
            await store.remember(bytes(64 << 10))
        ballast.unlink()
        again = store.journal(BANK)
        assert [at for at, _ in again.load().records] == list(range(1, confirmed + 1))
        with pytest.raises(StoreFailed, match=r"snapshot at .* was not written: .*No space left"):
            await again.checkpoint([bytes(ROOM)], confirmed)
        await again.committed(again.append(b"room for one more"))
        await again.checkpoint([b"small"], confirmed)
        assert await until_full(again) > confirmed + 1
    with Store(place / "s", N1) as store:
        loaded = store.journal(BANK).load()
        assert (loaded.base, list(loaded.snapshot or [])) == (confirmed, [b"small"])
        assert next(loaded.records) == (confirmed + 1, b"room for one more")


async def until_full(bank) -> int:  # type: ignore[no-untyped-def]
    """Returns how far it came."""
    for _ in range(1000):
        try:
            await bank.committed(bank.append(bytes(1000)))
        except StoreFailed:
            break
    assert "No space left" in bank.failure
    return int(bank.durable)
