"""The words of a statement, cut exactly as the database cuts them.

What is refused, and what a parameter is, is decided on these and not on a parse tree: a parser of another project may
read a text in another way than the database does, and a comment or a string must not hide anything.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from framework import BadRequest

Dialect = Literal["sqlite", "postgres"]

#: word: not quoted, ``value`` in lower case. name: quoted, ``value`` without the quotes. param: ``value`` is what the
#: text has after the sign.
Sort = Literal["word", "name", "string", "blob", "number", "param", "op"]


class Token(NamedTuple):
    sort: Sort
    value: str
    start: int
    end: int

    def is_(self, *words: str) -> bool:
        """Is it one of these keywords?"""
        return self.sort == "word" and self.value in words

    def names(self) -> bool:
        """May it be the name of something?"""
        return self.sort in ("word", "name")


_WORD = r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*"
_NUMBER = r"0[xX][0-9a-fA-F]+|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?"

_PATTERNS: Final = {
    "sqlite": re.compile(
        rf"""(?P<space>[ \t\n\f\r\ufeff]+|--[^\n]*|/\*.*?(?:\*/|\Z))
        |(?P<blob>[xX]'[^']*')
        |(?P<string>'(?:[^']|'')*')
        |(?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
        |(?P<number>{_NUMBER})
        |(?P<param>\?[0-9]*|[:@$][A-Za-z0-9_$\u0080-\U0010ffff]+)
        |(?P<word>{_WORD})
        |(?P<op>[-+*/%&|~<>=!,;.()])""",
        re.VERBOSE | re.DOTALL,
    ),
    "postgres": re.compile(
        rf"""(?P<space>[ \t\n\f\r\v]+|--[^\n\r]*)
        |(?P<comment>/\*)
        |(?P<odd>[uU]&['"])
        |(?P<escaped>[eE]'(?:[^'\\]|''|\\.)*')
        |(?P<blob>[bBxX]'[^']*')
        |(?P<string>[nN]?'(?:[^']|'')*'|\$(?P<tag>(?:[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*)?)\$
            .*?\$(?P=tag)\$)
        |(?P<name>"(?:[^"]|"")+")
        |(?P<number>{_NUMBER})
        |(?P<cast>::|:=)
        |(?P<param>\?|\$[0-9]+|:[A-Za-z_][A-Za-z0-9_]*)
        |(?P<word>{_WORD})
        |(?P<op>[-+*/%&|~<>=!@\#^`,;:.()\[\]{{}}])""",
        re.VERBOSE | re.DOTALL,
    ),
}


def tokens(text: str, dialect: Dialect) -> list[Token]:
    """All but space and comments. BadRequest if the database cannot read it either."""
    return list(_tokens(text, dialect))


def _tokens(text: str, dialect: Dialect) -> Iterator[Token]:
    pattern, at = _PATTERNS[dialect], 0
    while at < len(text):
        found = pattern.match(text, at)
        if found is None:
            raise BadRequest(f"cannot read the statement from {text[at : at + 20]!r} on: a quote that is not closed?")
        sort, end = found.lastgroup, found.end()
        if sort == "comment":
            end = _after_comment(text, at)
        elif sort == "odd":
            raise BadRequest("U&'...' is not supported: write the characters themselves")
        elif sort != "space":
            yield _token(str(sort), found.group(), at, end)
        at = end


def _token(sort: str, text: str, start: int, end: int) -> Token:
    if sort == "word":
        return Token("word", _lower(text), start, end)
    if sort == "name":
        inner, quote = text[1:-1], text[-1]
        return Token("name", inner if quote == "]" else inner.replace(quote * 2, quote), start, end)
    if sort == "string":
        return Token("string", _unquoted(text), start, end)
    if sort == "escaped":
        return Token("string", text, start, end)  # as it stands: nobody looks for an exact value of it
    if sort == "cast":
        return Token("op", text, start, end)
    if sort == "param":
        return Token("param", text[1:], start, end)
    assert sort in ("blob", "number", "op")
    return Token(sort, text, start, end)  # type: ignore[arg-type]


def _unquoted(text: str) -> str:
    if text[0] == "$":
        tag = text.index("$", 1) + 1
        return text[tag:-tag]
    return text[text.index("'") + 1 : -1].replace("''", "'")


def _after_comment(text: str, at: int) -> int:
    """PostgreSQL's comments are nested."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if mark.group() == "/*" else -1
        if not depth:
            return mark.end()
    raise BadRequest("a comment is not closed")


_UPPER: Final = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}


def _lower(text: str) -> str:
    """As databases fold names: only ASCII."""
    return text.lower() if text.isascii() else text.translate(_UPPER)


def folded(name: str) -> str:
    """A name of SQLite, which does not tell upper from lower case even in quotes."""
    return _lower(name)
