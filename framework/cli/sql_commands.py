"""The commands of the SQL shell that are no SQL: a dot, a name, and what goes with it."""

import re
from collections.abc import Callable

from rich.table import Table

from framework.cli import sql_explain, sql_replicas
from framework.cli.sql_run import Runner
from framework.cli.sql_show import MODES
from framework.cli.sql_where import Found
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest, OboError

#: Name, what goes with it, what it does: also the help and the completion.
COMMANDS = (
    (".tables", "", "the tables"),
    (".schema", "[TABLE]", "what would make them again"),
    (".replicas", "", "who is there, who is ready, whether all hold the same"),
    (".explain", "SQL", "what a statement touches and would wait for; it is not performed"),
    (".read", "[LEVEL]", "what a read has to see: any, session, linearizable, majority"),
    (".mode", "[table|csv|json]", "how results are shown"),
    (".timing", "[on|off]", "say how long a statement took"),
    (".help", "", "this list"),
    (".quit", "", "end; so does Ctrl-D"),
)
NAMES = tuple(name for name, _, _ in COMMANDS)


class Quit(Exception):
    """The user has seen enough."""


class Commands:
    def __init__(self, found: Found, runner: Runner) -> None:
        self._found = found
        self._runner = runner
        self._console = runner.shower.console

    def run(self, line: str) -> bool:
        """False: it failed, and that has been said."""
        name, _, rest = line.strip().partition(" ")
        name = {".exit": ".quit", ".q": ".quit", ".h": ".help"}.get(name, name)
        try:
            if name not in NAMES:
                raise BadRequest(f"no command {name!r}; {did_you_mean(name, NAMES)}; .help says what they do")
            does: Callable[[str], None] = getattr(self, f"_{name.removeprefix('.')}")
            does(rest.strip().rstrip(";").strip())
        except OboError as error:
            self._runner.say_why(error)
            return False
        return True

    def _tables(self, rest: str) -> None:
        _nothing(".tables", rest)
        names = self._runner.db.tables()
        for name in names:
            self._console.print(name, markup=False)
        if not names:
            self._runner.note("no tables")

    def _schema(self, rest: str) -> None:
        texts = self._runner.db.schema()
        if rest:
            known = self._runner.db.tables()
            if rest not in known:
                raise BadRequest(f"no table {rest!r}; {did_you_mean(rest, known)}")
            texts = [text for text in texts if mentions(text, rest)]
        for text in texts:
            self._print_sql(text.rstrip().removesuffix(";") + ";")

    def _print_sql(self, text: str) -> None:
        if not self._console.is_terminal:
            self._console.print(text, markup=False, soft_wrap=True)
            return
        from rich.syntax import Syntax

        self._console.print(Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True))

    def _replicas(self, rest: str) -> None:
        _nothing(".replicas", rest)
        sql_replicas.show(self._console, self._found)

    def _explain(self, rest: str) -> None:
        if not rest:
            raise BadRequest("explain what? Write the statement after .explain")
        sql_explain.show(self._console, self._runner.db.explain(rest))

    def _read(self, rest: str) -> None:
        from objects.sql.client import check_level

        if rest:
            self._runner.db.read = check_level(rest)
        self._runner.note(f"reads: {self._runner.db.read}")

    def _mode(self, rest: str) -> None:
        if rest not in ("", *MODES):
            raise BadRequest(f".mode {rest}: table, csv or json")
        self._runner.shower.mode = next((mode for mode in MODES if mode == rest), self._runner.shower.mode)
        self._runner.note(f"mode: {self._runner.shower.mode}")

    def _timing(self, rest: str) -> None:
        if rest not in ("", "on", "off"):
            raise BadRequest(f".timing {rest}: on or off")
        self._runner.shower.timing = rest == "on" if rest else not self._runner.shower.timing
        self._runner.note(f"timing: {'on' if self._runner.shower.timing else 'off'}")

    def _help(self, rest: str) -> None:
        table = Table.grid(padding=(0, 2))
        for name, takes, does in COMMANDS:
            table.add_row(f"[bold]{name}[/] {takes.replace('[', chr(92) + '[')}", does)
        self._console.print(table)
        self._console.print(
            "SQL ends with ';' and may go over several lines. BEGIN; ... COMMIT; is sent as a whole. "
            "Ctrl-C takes back the line, or cancels the statement.",
            style="dim",
        )

    def _quit(self, rest: str) -> None:
        raise Quit


def mentions(text: str, table: str) -> bool:
    """Does this CREATE make the table, or something on it?"""
    name = rf"[\"`\[]?{re.escape(table)}[\"`\]]?"
    made = rf"\s*CREATE\s+(?:\w+\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:\w+\.)?{name}(?:\W|$)"
    on = rf"\s*CREATE\s.*?\bON\s+(?:ONLY\s+)?(?:\w+\.)?{name}(?:\W|$)"
    return re.match(f"{made}|{on}", text, re.I | re.S) is not None


def _nothing(name: str, rest: str) -> None:
    if rest:
        raise BadRequest(f"{name} takes nothing, not {rest!r:.80}")
