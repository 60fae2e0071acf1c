"""Files of certificates and tokens: read with errors that name them, written so that only their owner reads them."""

import os
from pathlib import Path

from framework.errors import BadRequest


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None


def write(path: Path, data: bytes, secret: bool, replace: bool = False) -> None:
    """A new file; a secret one is never readable by others, not even for a moment."""
    if replace:
        path.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644), "wb") as file:
            file.write(data)
    except FileExistsError:
        raise BadRequest(f"{path} is there already: give --force to replace it") from None
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
