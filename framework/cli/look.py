"""``--show`` and ``--svg`` of ``obo sim`` and ``obo verify``: a run as a picture."""

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import msgspec
from rich.console import Console

from framework.cli.numbers import moment, new_file
from framework.errors import BadRequest
from framework.files import put
from framework.sim import svg, terminal
from framework.sim.picture import Cut, Picture, cut_out
from framework.sim.verdict import Verdict

_WIDTH = 140  # of what is no terminal


class Look(msgspec.Struct):
    """What is wanted of a picture."""

    show: bool
    svg: Path | None
    cut: Cut

    def __bool__(self) -> bool:
        return self.show or self.svg is not None


def wanted(
    show: bool, file: str | None, start: str | None, end: str | None, only: str | None, as_json: bool, one: bool
) -> Look:
    """From the options; ``one``: is there just one run to draw?"""
    look = Look(show, new_file("--svg", file), Cut(moment("--from", start), moment("--to", end), only or ""))
    if show and as_json:
        raise BadRequest("--show and --json both want stdout: give one of them")
    if look and not one:
        raise BadRequest("--show and --svg draw one run: name it, as in obo sim --seed 7 or obo verify DIR/7")
    if look.cut != Cut() and not look:
        raise BadRequest("--from, --to and --only say what to draw: add --show or --svg FILE")
    return look


def draw(look: Look, picture: Picture, name: str, verdict: Verdict) -> None:
    picture = cut_out(picture, look.cut)
    title = f"{name}: {headline(verdict)}"
    notes = [str(v) for v in verdict.violations]
    if look.svg is not None:
        try:
            put(look.svg, svg.draw(picture, title, notes).encode("utf-8", "replace"))
        except OSError as error:
            raise BadRequest(f"--svg {look.svg}: {error.strerror}") from None
    if look.show:
        _show(picture, title, notes)


def headline(verdict: Verdict) -> str:
    wrong = f"{len(verdict.violations)} violation{'' if len(verdict.violations) == 1 else 's'}"
    return (
        f"{verdict.requests} requests, {verdict.delivered} performed, {verdict.fast} fast, {verdict.slow} slow, {wrong}"
    )


def _show(picture: Picture, title: str, notes: Sequence[str]) -> None:
    encodable(sys.stdout)
    console = Console(highlight=False)
    width = console.width if console.is_terminal else _WIDTH
    signs = terminal.SIGNS if console.encoding.startswith("utf") else terminal.PLAIN
    for line in terminal.draw(picture, title, width, signs):
        line.rstrip()
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    for note in notes:
        console.print(note, style="bold red", markup=False, soft_wrap=True)


def encodable(stream: TextIO) -> None:
    """A terminal without some sign shows '?' for it; it is no reason to end."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")
