"""Tokens of clients: who may do what. A node keeps their digests, never the tokens.

    [ann]                       # a name for logs and errors
    role = "call"               # read-only, call, admin
    sha256 = "9f86d0..."        # of the token; `obo token new` writes it

A token is 256 bits of chance, so a plain digest is enough: there is nothing to guess. The file is read again when it
has changed: a new token works at once, a removed one opens nothing any more.
"""

import hashlib
import hmac
import logging
import re
import secrets
import tomllib
from pathlib import Path
from typing import Literal, get_args

import msgspec

from framework.errors import BadRequest
from framework.net.files import content, write

log = logging.getLogger(__name__)

Role = Literal["read-only", "call", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,29}\Z")  # part of the names of clients: see orb/guard.py
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    role: Role
    sha256: str


class Known(msgspec.Struct, frozen=True):
    """A token, without the token."""

    name: str
    role: Role
    digest: str


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def parse(text: str) -> list[Known]:
    try:
        entries = msgspec.convert(tomllib.loads(text), dict[str, _Entry])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadRequest(str(error)) from None
    for name, entry in entries.items():
        _check_name(name)
        if not _DIGEST.match(entry.sha256):
            raise BadRequest(f"[{name}] sha256: no digest of 64 hexadecimal digits; obo token new makes one")
    return [Known(name, entry.role, entry.sha256) for name, entry in entries.items()]


def read(path: Path) -> list[Known]:
    try:
        return parse(content(path).decode())
    except UnicodeDecodeError:
        raise BadRequest(f"{path}: not UTF-8") from None
    except BadRequest as error:
        where = "" if str(error).startswith(str(path)) else f"{path}: "
        raise BadRequest(f"{where}{error}") from None


def add(path: Path, name: str, role: str) -> str:
    """A new token, for the one who will use it; its digest goes to the end of the file."""
    _check_name(name)
    if role not in ROLES:
        raise BadRequest(f"role {role!r}: one of {', '.join(ROLES)}")
    old = content(path).decode() if path.exists() else ""
    if any(known.name == name for known in parse(old)):
        raise BadRequest(f"{path} has a token named {name} already: take another name, or remove its entry first")
    token = f"obo_{secrets.token_urlsafe(32)}"
    new = f'{old}[{name}]\nrole = "{role}"\nsha256 = "{digest(token)}"\n'
    write(path, new.encode(), secret=True, replace=True)  # a node that reads meanwhile sees the old or the new one
    return token


def _check_name(name: str) -> None:
    if not _NAME.match(name):
        raise BadRequest(f"token name {name!r}: use a letter, then letters, digits, '_', '-' (30 at most)")


class Tokens:
    """The file, as a node uses it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = read(path)
        self._seen = self._stamp()

    def find(self, token: str) -> Known | None:
        """Whose token this is. Takes the same time whatever the token looks like."""
        self._look_again()
        wanted = digest(token)
        found = None
        for known in self._known:
            if hmac.compare_digest(known.digest, wanted):
                found = known
        return found

    def _look_again(self) -> None:
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._known = read(self._path)
        except BadRequest as error:
            log.error("the tokens stay as they were: %s", error)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
