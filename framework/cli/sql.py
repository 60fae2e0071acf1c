"""``obo sql``: a replicated database from the command line: a shell, single statements, pipes, and files."""

import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from framework import BadRequest
from framework.cli import sql_backup, sql_check, sql_explain, sql_import, sql_restore
from framework.cli.sql_commands import Commands, Quit
from framework.cli.sql_run import Runner
from framework.cli.sql_show import Mode, Shower
from framework.cli.sql_split import Splitter, split
from framework.cli.sql_where import TIMEOUT, Found, Name, Seconds, database
from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir

_STATEMENT = "statement"  # the command behind obo sql "...": hidden, its options are those of obo sql


class _Group(TyperGroup):
    """``obo sql "select ..."``: what is no command is a statement. Options may stand before the command, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = self._first_word(ctx, args)
        if "--help" in args[:at]:
            return super().parse_args(ctx, ["--help"])
        named = at < len(args) and args[at] in self.commands
        args = [args[at], *args[:at], *args[at + 1 :]] if named else [_STATEMENT, *args]
        return super().parse_args(ctx, args)

    def _first_word(self, ctx: Any, args: list[str]) -> int:
        """Where the first word is that is no option and no value of one."""
        takes = {name: not p.is_flag for p in self._options(ctx) for name in (*p.opts, *p.secondary_opts)}
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            at += 2 if takes.get(args[at], False) else 1
        return min(at, len(args))

    def _options(self, ctx: Any) -> list[Any]:
        return [p for p in self.commands[_STATEMENT].get_params(ctx) if p.param_type_name == "option"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.params = [p for p in self._options(ctx) if p.name != "help"]
        super().format_help(ctx, formatter)


app = typer.Typer(
    cls=_Group,
    help="Talk to a replicated database. Without a statement a shell, or what comes through a pipe.\n\n"
    'Examples: obo sql · obo sql "select * from accounts" --csv · obo sql < schema.sql',
    subcommand_metavar="[STATEMENTS | COMMAND ...]",
)


@app.command(_STATEMENT, hidden=True)
def statement(
    text: Annotated[list[str] | None, typer.Argument(metavar="STATEMENTS")] = None,
    read: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="What a read has to see: any, session, linearizable or majority. In the shell it is session, else "
            "linearizable.",
        ),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Results as CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON, one object per row and line.")] = False,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Do not stop at the first error.")] = False,
    name: Name = None,
    timeout: Seconds = TIMEOUT,
    at: At = None,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
) -> None:
    """Run statements, or a shell. Ends with 1 if a statement failed, with 2 if there is no database to talk to."""
    if as_csv and as_json:
        raise BadRequest("--csv and --json: give one of them")
    if text is not None and len(text) > 1:
        raise BadRequest(f"{len(text)} statements as {len(text)} words: put them into one, with ';' between them")
    mode: Mode = "csv" if as_csv else "json" if as_json else "table"
    shell = text is None and sys.stdin.isatty() and sys.stdout.isatty()
    level: Any = read or ("session" if shell else "linearizable")
    with database(name, at, config, credentials, level, timeout) as found:
        if shell:
            from framework.cli.sql_shell import Shell

            Shell(found, Shower(mode)).run()
            return
        script = Script(found, mode, keep_going)
        done = script.run([text[0]] if text else sys.stdin)
    raise typer.Exit(0 if done else 1)


class Script:
    """Statements from a pipe or the command line, without a prompt."""

    def __init__(self, found: Found, mode: Mode, keep_going: bool) -> None:
        self._runner = Runner(found.db, Shower(mode, notes=sys.stdout.isatty()))
        self._commands = Commands(found, self._runner)
        self._keep_going = keep_going
        self._good = True

    def run(self, lines: Iterable[str]) -> bool:
        """False: something failed."""
        splitter = Splitter()
        try:
            for line in lines:
                if splitter.is_blank and line.lstrip().startswith("."):
                    self._did(self._commands.run(line))
                    continue
                for one in splitter.feed(line):
                    self._did(self._runner.run(one))
            for one in split(splitter.rest):  # the last one may do without its ';'
                self._did(self._runner.run(one))
            self._did(self._runner.end())
        except (Quit, _Stop):
            pass
        except KeyboardInterrupt:
            self._runner.say("cancelled")
            raise typer.Exit(130) from None
        return self._good

    def _did(self, good: bool) -> None:
        self._good &= good
        if not good and not self._keep_going:
            raise _Stop


class _Stop(Exception):
    """At the first error."""


app.command("explain")(sql_explain.run)
app.command("import")(sql_import.run)
app.command("backup")(sql_backup.run)
app.command("restore")(sql_restore.run)
app.command("check")(sql_check.run)
