"""Write a file whole or not at all: Ctrl-C, a full disk or the end of the process leaves the old one as it was."""

import os
from pathlib import Path


def put(path: Path, data: bytes | str, mode: int | None = None) -> None:
    """Give the file this content, and keep its mode if it has one. A link stays one, and its target changes.

    A pipe or a device is written as it is, and so is a file in a directory that takes no new files."""
    raw = data.encode() if isinstance(data, str) else data
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(raw)
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)  # of an earlier process with this number
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    except OSError:
        if mode is not None or not path.exists():
            raise
        path.write_bytes(raw)
        return
    try:
        with os.fdopen(number, "wb") as file:
            file.write(raw)
        if mode is None and path.exists():
            part.chmod(path.stat().st_mode & 0o7777)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
