"""Modules of the com layer and of the orb as machine code, where ``make compiled`` has made them.

``obo serve``, ``obo sim`` and ``obo explore`` use them, and only if each was made from the source that is here now:
what somebody edits is what runs. Everything else imports the sources, and so do these with ``OBO_PURE=1``. They do the
same: the simulator gives the same traces with both.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

_PACKAGE = Path(__file__).resolve().parent
HERE = _PACKAGE / "_compiled"
_RECORD = "made_from.json"


def record(sources: Iterable[Path], here: Path = HERE) -> None:
    """What the modules were made from."""
    made = {str(s.relative_to(_PACKAGE)): _digest(s) for s in sources}
    (here / _RECORD).write_text(json.dumps(made, indent=1))


def use(here: Path = HERE) -> str:
    """From now on compiled modules are imported where there are any. Empty: they are; else why not."""
    if os.environ.get("OBO_PURE"):
        return "OBO_PURE is set"
    try:
        made: dict[str, str] = json.loads((here / _RECORD).read_text())
    except (OSError, ValueError):
        return "there are none"
    for source, digest in made.items():
        path = _PACKAGE / source
        if not path.is_file() or _digest(path) != digest:
            return f"framework/{source} has changed since: make compiled"
        if _name(source) in sys.modules:
            return f"{_name(source)} is imported already"
    finder = Finder(here)
    missing = [source for source in made if finder.find_spec(_name(source)) is None]
    if missing:
        return f"framework/{missing[0]} is not there for this Python: make compiled"
    sys.meta_path.insert(0, finder)
    return ""


def used() -> bool:
    return any(isinstance(finder, Finder) for finder in sys.meta_path)


class Finder:
    """Finds ``framework.com.core`` as ``framework.com.core.SUFFIX`` in a directory of its own."""

    def __init__(self, here: Path) -> None:
        self._files = {
            path.name.removesuffix(suffix): path
            for suffix in reversed(EXTENSION_SUFFIXES)
            for path in here.glob(f"*{suffix}")
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(name)
        return spec_from_file_location(name, file) if file is not None else None


def _name(source: str) -> str:
    return ".".join(("framework", *Path(source).with_suffix("").parts))


def _digest(source: Path) -> str:
    return sha256(source.read_bytes()).hexdigest()
