"""``obo …``: one file per command, registered here.

A command is a function ``run`` in a module of this package, with typer's options as its parameters and its
help as its docstring. To add one: write ``framework/cli/NAME.py`` and put its name into ``COMMANDS``.
"""

import sys
from importlib import import_module
from typing import Annotated

import typer

from framework import OboError, __version__

#: In the order of the help. A name with '-' lives in the module with '_'.
COMMANDS = ("conflicts",)

app = typer.Typer(
    name="obo",
    help="Distributed objects that are ordered only where order matters.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"obo {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    pass


def _register() -> None:
    for name in COMMANDS:
        module = import_module(f"framework.cli.{name.replace('-', '_')}")
        app.command(name)(module.run)


_register()


def main() -> None:
    """What the ``obo`` script calls: a mistake of the user is one line, not a traceback."""
    try:
        app()
    except OboError as error:
        print(f"obo: error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
