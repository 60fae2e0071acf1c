"""Where one SQL statement ends and the next begins: at a ';' that is in no string, name, comment or trigger.

Text comes bit by bit, from a keyboard or a pipe. What is understood: '...' and E'...',
"...", `...`, [...] after a word or space (not the subscript of an array), $tag$...$tag$, -- and /* */ comments, and
SQLite's CREATE TRIGGER ... BEGIN ...; ...; END.
"""

import re
import sqlite3

_PIECE = re.compile(
    r"""
      '[^']*(?:''[^']*)*'
    | "[^"]*(?:""[^"]*)*"
    | `[^`]*(?:``[^`]*)*`
    | --[^\n]*\n
    | /\*.*?\*/
    """,
    re.X | re.S,
)
_ESCAPED = re.compile(r"'[^'\\]*(?:(?:''|\\.)[^'\\]*)*'", re.S)
_BRACKET = re.compile(r"\[[^\]]*\]")
_DOLLAR = re.compile(r"\$(?:[A-Za-z_]\w*)?\$")
_PLAIN = re.compile(r"[^'\"`\[$;\-/]+")
_TRIGGER = re.compile(r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP\s+|TEMPORARY\s+|CONSTRAINT\s+)?TRIGGER\b", re.I)
_BEGIN = re.compile(r"\bBEGIN\b", re.I)
_WORD = re.compile(r"[A-Za-z_]+")


class Splitter:
    """``feed`` gives the statements that are complete; ``rest`` is what is not."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0  # everything before it has been looked at

    @property
    def rest(self) -> str:
        return self._text.strip()

    @property
    def is_blank(self) -> bool:
        """Nothing but space and comments waits for more."""
        return not bare(self._text).strip()

    def feed(self, text: str) -> list[str]:
        self._text += text
        found = []
        while (end := self._next()) is not None:
            statement = self._text[:end].strip()
            self._text, self._at = self._text[end:], 0
            if bare(statement).strip(" \t\r\n;"):
                found.append(statement)
        return found

    def clear(self) -> None:
        self._text, self._at = "", 0

    def _next(self) -> int | None:
        """Behind the next ';' that ends a statement; None if there is none so far."""
        while self._at < len(self._text):
            end = _piece(self._text, self._at)
            if end is None:
                return None
            ends = self._text[self._at] == ";" and not _inside_trigger(self._text[:end])
            self._at = end
            if ends:
                return end
        return None


def split(text: str) -> list[str]:
    """All statements of a text; the last one may do without its ';'."""
    splitter = Splitter()
    found = [statement for line in text.splitlines(keepends=True) for statement in splitter.feed(line)]
    return found if splitter.is_blank else [*found, splitter.rest]


def _piece(text: str, at: int) -> int | None:
    """Where the piece that begins here ends; None if that cannot be told yet."""
    first = text[at]
    if (plain := _PLAIN.match(text, at)) is not None:
        return plain.end()
    if first == ";":
        return at + 1
    if first in "-/":
        if at + 1 == len(text):
            return None  # it may become a comment
        if text[at : at + 2] not in ("--", "/*"):
            return at + 1
        pattern = _PIECE
    elif first == "[":
        if at and (text[at - 1].isalnum() or text[at - 1] in '_"])'):
            return at + 1  # a subscript
        pattern = _BRACKET
    elif first == "$":
        return _dollar(text, at)
    else:
        pattern = _ESCAPED if first == "'" and _is_escaped(text, at) else _PIECE
    found = pattern.match(text, at)
    if found is None or (first in "'\"`" and found.end() == len(text)):
        return None  # a doubled quote may follow
    return found.end()


def _dollar(text: str, at: int) -> int | None:
    tag = _DOLLAR.match(text, at)
    if tag is None:
        return None if re.fullmatch(r"\$\w*", text[at:]) else at + 1
    if at and (text[at - 1].isalnum() or text[at - 1] == "_"):
        return at + 1  # part of a name
    end = text.find(tag[0], tag.end())
    return None if end < 0 else end + len(tag[0])


def _is_escaped(text: str, at: int) -> bool:
    """E'...': there a backslash hides the quote."""
    return text[at - 1 : at] in ("e", "E") and not (text[at - 2 : at - 1].isalnum() or text[at - 2 : at - 1] == "_")


def _inside_trigger(statement: str) -> bool:
    words = bare(statement)
    if _TRIGGER.match(words.lstrip()) is None or _BEGIN.search(words) is None:  # PostgreSQL's has no BEGIN
        return False
    return not sqlite3.complete_statement(statement)


def bare(statement: str) -> str:
    """Without what is quoted, and without comments."""
    found, at = [], 0
    while at < len(statement):
        end = _piece(statement, at)
        if end is None:
            end = len(statement)
        piece = statement[at:end]
        if piece.startswith(("--", "/*")):
            found.append(" ")
        elif piece[0] in "'\"`" or (piece[0] in "[$" and len(piece) > 1):
            found.append(piece[0] * 2)
        else:
            found.append(piece)
        at = end
    return "".join(found)


#: Statements that only read; the rest is ordered with all writes.
_READS = ("SELECT", "VALUES", "TABLE", "EXPLAIN", "PRAGMA", "SHOW")
_WRITES = re.compile(r"\b(?:INSERT|UPDATE|DELETE|MERGE|REPLACE(?!\s*\())\b", re.I)


def first_word(statement: str) -> str:
    found = _WORD.search(bare(statement))
    return found[0].upper() if found else ""


def only_reads(statement: str) -> bool:
    """As far as can be told from the words; the database itself has the last one."""
    first = first_word(statement)
    return first in _READS or (first == "WITH" and _WRITES.search(bare(statement)) is None)


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
