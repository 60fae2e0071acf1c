"""Files of certificates and tokens: read with errors that name them, written so that only their owner reads them."""

import os
from pathlib import Path

from framework.errors import BadRequest
from framework.files import put


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None


def write(path: Path, data: bytes, secret: bool, replace: bool = False) -> None:
    """Write a new file whole or not at all; a secret one is never readable by others, not even for a moment."""
    try:
        if not replace and os.path.lexists(path):
            raise BadRequest(f"{path} is there already: give --force to replace it")
        put(path, data, 0o600 if secret else 0o644)
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
