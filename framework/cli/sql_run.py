"""SQL statements one after the other, as the shell, a pipe and ``obo sql "..."`` have them: run, show, or say why not.

BEGIN ... COMMIT is a transaction that is sent as a whole: what stands between them is kept until COMMIT, and all of it
happens or nothing. ROLLBACK forgets it.
"""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from framework.cli.sql_show import Shower, printable
from framework.cli.sql_split import first_word, only_reads
from framework.declare.suggest import nearest
from framework.errors import DeadlineExceeded, OboError, OutcomeUnknown, RemoteError, Unavailable

if TYPE_CHECKING:
    from objects.sql.client import Sql

_NO_TABLE = re.compile(r'no such table: (?:\w+\.)?([^\s;]+)|relation "(?:\w+\.)?([^"]+)" does not exist')
_BEGIN = ("BEGIN", "START")
_COMMIT = ("COMMIT", "END")
_DDL = ("CREATE", "DROP", "ALTER", "REINDEX", "ANALYZE")
_ROLLBACK = ("ROLLBACK", "ABORT")


class Runner:
    def __init__(self, db: "Sql", shower: Shower, errors: Console | None = None) -> None:
        self.db = db
        self.shower = shower
        self.errors = errors if errors is not None else Console(stderr=True, highlight=False, soft_wrap=True)
        self.kept: list[str] | None = None  # of a transaction that has not been sent
        self.changed: Callable[[], None] = lambda: None  # told when tables may have come or gone

    def run(self, statement: str) -> bool:
        """False: it failed, and that has been said."""
        try:
            self._run(statement)
        except OboError as error:
            self.say_why(error)
            return False
        return True

    def _run(self, statement: str) -> None:
        first = first_word(statement)
        if self.kept is not None:
            self._keep(first, statement)
        elif first in _BEGIN:
            self.kept = []
            self.note("a transaction: what follows is sent at COMMIT, as a whole")
        elif first in _COMMIT or first in _ROLLBACK:
            self.note("there is no transaction to end: BEGIN starts one")
        else:
            began = time.perf_counter()
            result = self.db.query(statement) if only_reads(statement) else self.db.execute(statement)
            took = time.perf_counter() - began
            if first in _DDL:
                self.note("done", took)
                self.changed()
            else:
                self.shower.show(result, took)

    def _keep(self, first: str, statement: str) -> None:
        assert self.kept is not None
        if first in _BEGIN:
            self.note("a transaction has begun already: COMMIT sends it, ROLLBACK forgets it")
        elif first in _ROLLBACK:
            self.note(f"{_statements(len(self.kept))} forgotten; nothing was sent")
            self.kept = None
        elif first in _COMMIT:
            kept, self.kept = self.kept, None
            self._send(kept)
        else:
            self.kept.append(statement)
            self.note(f"kept, {_statements(len(self.kept))} so far")

    def _send(self, kept: list[str]) -> None:
        if not kept:
            self.note("nothing to send")
            return
        began = time.perf_counter()
        results = self.db.transaction([(statement, ()) for statement in kept])
        took = time.perf_counter() - began
        for result in results:
            self.shower.show(result)
        self.note(f"committed {_statements(len(kept))}", took)
        self.changed()

    def end(self) -> bool:
        """No more statements come. False: a transaction was never committed."""
        if self.kept is None:
            return True
        self.say(f"the transaction was not committed: {_statements(len(self.kept))} forgotten; end it with COMMIT;")
        self.kept = None
        return False

    def note(self, text: str, seconds: float | None = None) -> None:
        if self.shower.notes:
            self.shower.note(text, seconds)

    def say(self, text: str) -> None:
        """An error, in one red line."""
        self.errors.print(Text(f"error: {printable(' '.join(text.split()))}", style="bold red"))

    def say_why(self, error: OboError) -> None:
        self.say(explained(error, self._tables))

    def _tables(self) -> list[str]:
        try:
            return self.db.tables("any")
        except OboError:
            return []


def explained(error: OboError, tables: Callable[[], list[str]] = list) -> str:
    """What went wrong, and what to do."""
    text = str(error)
    if isinstance(error, RemoteError):
        text = text.removeprefix("BadRequest: ")
        missing = _NO_TABLE.search(text)
        if missing is not None:
            near = nearest(missing[1] or missing[2], tables())
            return f"{text}; " + (f"did you mean {near!r}?" if near else ".tables lists those there are")
    elif isinstance(error, OutcomeUnknown | DeadlineExceeded):
        return f"{text}. If it writes, it may have happened: look before you send it again"
    elif isinstance(error, Unavailable):
        return f"{text}. obo status says which nodes are there; in the shell, .read any reads even so"
    return text


def _statements(count: int) -> str:
    return f"{count} {'statement' if count == 1 else 'statements'}"
