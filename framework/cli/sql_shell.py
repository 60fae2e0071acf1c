"""The SQL shell: history, completion, statements over several lines.

Enter sends what is complete: a command, or SQL up to its ';'. Ctrl-C takes back the line, or cancels the statement that
is running; Ctrl-D ends.
"""

import os
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import Style
from pygments.lexers.sql import SqlLexer

from framework.cli.sql_commands import Commands, Quit
from framework.cli.sql_complete import Names, SqlCompleter
from framework.cli.sql_run import Runner
from framework.cli.sql_show import Shower
from framework.cli.sql_split import Splitter, only_reads, split
from framework.cli.sql_where import Found

_STYLE = Style.from_dict(
    {
        "prompt": "bold ansicyan",
        "open": "bold ansiyellow",
        "more": "ansibrightblack",
        "pygments.keyword": "bold ansiblue",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansimagenta",
        "pygments.comment": "ansibrightblack italic",
    }
)


class Shell:
    def __init__(self, found: Found, shower: Shower) -> None:
        self._found = found
        self._runner = Runner(found.db, shower)
        self._commands = Commands(found, self._runner)
        names = Names(found.db)
        names.refresh()
        self._runner.changed = names.refresh
        self._session: PromptSession[str] = PromptSession(
            self._prompt,
            lexer=PygmentsLexer(SqlLexer),
            completer=SqlCompleter(names),
            complete_in_thread=True,
            history=history(),
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation=self._continuation,
            style=_STYLE,
            enable_open_in_editor=True,
        )

    def run(self) -> None:
        self._greet()
        while True:
            try:
                self._perform(self._session.prompt())
            except KeyboardInterrupt:
                continue
            except (EOFError, Quit):
                break
        self._runner.end()

    def _greet(self) -> None:
        replicas = self._found.about["replicas"]
        count = f"{len(replicas)} replica{'' if len(replicas) == 1 else 's'}"
        home = self._found.db.orb.home
        self._runner.note(f"{self._found.db.name}: {count}, on {', '.join(self._found.nodes)}; you talk to {home}.")
        self._runner.note("End SQL with ';'. .help lists commands, .quit ends.")

    def _prompt(self) -> StyleAndTextTuples:
        if self._runner.kept is not None:
            return [("class:open", f"{self._found.db.name}*> ")]
        return [("class:prompt", f"{self._found.db.name}> ")]

    def _continuation(self, width: int, line: int, wrapped: int) -> StyleAndTextTuples:
        return [("class:more", f"{'...> ':>{width}}")]

    def _perform(self, text: str) -> None:
        if text.lstrip().startswith("."):
            self._commands.run(text)
            return
        for statement in split(text):
            try:
                if not self._runner.run(statement):
                    break
            except KeyboardInterrupt:
                sent = "" if only_reads(statement) else "; it may have happened all the same: look before you repeat it"
                self._runner.say(f"cancelled{sent}")
                break


def is_complete(text: str) -> bool:
    """Can this be sent?"""
    if text.lstrip().startswith("."):
        return True
    splitter = Splitter()
    for line in text.splitlines(keepends=True):
        splitter.feed(line)
    return splitter.is_blank


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # it is chosen, not sent
        elif is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


# history


class _Lasting(FileHistory):
    """A disk that is full is no reason to end."""

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError:
            pass


def history() -> History:
    """In the user's state directory; only for this shell, if nothing can be written there."""
    file = _file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600))  # statements may hold what is private
    except OSError:
        return InMemoryHistory()
    return _Lasting(file)


def _file() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    where = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return where / "obo" / "sql_history"
