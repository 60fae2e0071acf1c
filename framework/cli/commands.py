"""``obo …``: one file per command, registered here.

To add a command: write ``framework/cli/NAME.py`` with a function ``run``, whose parameters are typer's options and
whose docstring is the help, and put NAME into ``COMMANDS``. For a command with subcommands (``obo bench core``) the
module has a ``typer.Typer`` named ``app`` instead. ``obo --help`` imports every module here: import what is heavy
(matplotlib, pyspark) inside the function.
"""

import sys
from importlib import import_module
from typing import Annotated

from framework import OboError, __version__, compiled
from framework.cli.gently import gently, import_all

if sys.argv[1:2] in (["serve"], ["sim"], ["explore"]):  # before anything of the com layer is imported
    compiled.use()
if sys.argv[1:2] in (["serve"], ["join"]):  # others may be serving on this machine
    gently(import_all)

import typer

#: In the order of the help. A name with '-' lives in the module with '_'.
COMMANDS = (
    "serve",
    "join",
    "call",
    "ls",
    "describe",
    "status",
    "tran",
    "leave",
    "evict",
    "health",
    "config",
    "certs",
    "token",
    "compose",
    "sql",
    "conflicts",
    "demo",
    "sim",
    "explore",
    "verify",
    "analyze",
    "fig9",
    "load",
    "bench",
    "compile",
    "soak",
    "doctor",
)

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
    """The command that was asked for, else all: what the others import takes a core that nodes may share."""
    asked = tuple(sys.argv[1:2])
    for name in asked if {*asked} & {*COMMANDS} else COMMANDS:
        module = import_module(f"framework.cli.{name.replace('-', '_')}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(module.run)


_register()


def main() -> None:
    """The command of ``sys.argv``: a mistake of the user is one line, not a traceback."""
    try:
        app()
    except OboError as error:
        print("obo: error:", " ".join(str(error).splitlines()), file=sys.stderr)
        raise SystemExit(2) from None
