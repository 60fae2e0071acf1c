"""From the rows of ``@conflict_matrix`` to the relation (P3 §2.2), and what is meant where nothing is said.

Each pair is stated once, in either row. In doubt two methods conflict, which costs order and never
correctness:

- without a matrix everything conflicts, except two readonly methods;
- with one, only stated pairs conflict, but a method that no row mentions conflicts with everything: its
  author may have forgotten it. An explicit empty row, ``ping=()``, says that a method conflicts with nothing;
- ``"*"`` states every pair of the row; it mentions only the row's own method;
- a subclass inherits the rows of its bases and may add some. It cannot take one away: the inherited code
  still runs.
"""

from collections.abc import Iterator, Mapping, Sequence

from framework.declare.suggest import did_you_mean
from framework.errors import DeclarationError
from framework.footprint import Relation

Row = str | tuple[str, ...]
Rows = Mapping[str, Row]

EVERY = "*"


def relation(
    inherited: Sequence[Rows], own: Rows | None, readonly: Mapping[str, bool], intentions: bool = False
) -> Relation:
    """The relation on the methods; ``readonly`` maps each method to whether it is. Rows are checked before."""
    rows = [*inherited, *([] if own is None else [own])]
    mentioned = {m for r in rows for m in _mentioned(r)}
    stated = {pair for r in rows for pair in _pairs(r, readonly)}
    assumed = {(m, other) for m in readonly if m not in mentioned for other in readonly}
    pairs = sorted(p for p in stated | assumed if not (readonly[p[0]] and readonly[p[1]]))
    return Relation(pairs, intentions)


def check_rows(cls: type, inherited: Sequence[Rows], own: Rows, readonly: Mapping[str, bool]) -> None:
    """Every mistake in the rows that ``cls`` itself states."""
    if not own:
        raise DeclarationError(
            f"{cls.__name__}: its conflict matrix is empty: state a row, or leave the matrix out (then "
            "everything conflicts)"
        )
    for name, row in own.items():
        _check_name(cls, "row", name, readonly)
        for entry in _entries(cls, name, row):
            _check_name(cls, f"row {name!r}:", entry, readonly)
            _check_readonly(cls, name, entry, readonly)
    for name in (n for n, row in own.items() if row == ()):
        _check_empty(cls, name, [*inherited, own], readonly)


def _mentioned(rows: Rows) -> Iterator[str]:
    for name, row in rows.items():
        yield name
        if row != EVERY:
            yield from _names(row)


def _names(row: Row) -> tuple[str, ...]:
    return (row,) if isinstance(row, str) else row


def _pairs(rows: Rows, known: Mapping[str, bool]) -> Iterator[tuple[str, str]]:
    for name, row in rows.items():
        for other in known if row == EVERY else _names(row):
            yield name, other


def _entries(cls: type, name: str, row: object) -> tuple[str, ...]:
    """The names in a row, none for ``"*"``; the row's own form is checked."""
    where = f"{cls.__name__}: matrix row {name!r}"
    if isinstance(row, str):
        return () if row == EVERY else (row,)
    if not isinstance(row, tuple) or not all(isinstance(entry, str) for entry in row):
        raise DeclarationError(
            f'{where} is {row!r}: write a tuple of method names, {name}=("one", "other"), or {name}="*"'
        )
    if EVERY in row:
        raise DeclarationError(f'{where} has "*" among names: write {name}="*" alone')
    twice = [entry for i, entry in enumerate(row) if entry in row[:i]]
    if twice:
        raise DeclarationError(f"{where} names {twice[0]!r} twice: name it once, or did you mean another?")
    return row


def _check_name(cls: type, what: str, name: str, known: Mapping[str, bool]) -> None:
    if name in known:
        return
    if callable(getattr(cls, name, None)):
        raise DeclarationError(
            f"{cls.__name__}: matrix {what} {name!r} is a method without @method: write @method above its def"
        )
    raise DeclarationError(
        f"{cls.__name__}: matrix {what} {name!r} is no method of the class; {did_you_mean(name, known)}"
    )


def _check_readonly(cls: type, name: str, entry: str, readonly: Mapping[str, bool]) -> None:
    if readonly[name] and readonly[entry]:
        pair = f"{name!r} with itself" if name == entry else f"{name!r} with {entry!r}"
        raise DeclarationError(
            f"{cls.__name__}: the matrix has {pair}, but methods that are readonly cannot conflict: remove "
            "the entry, or readonly=True from one that does change the state"
        )


def _check_empty(cls: type, name: str, rows: Sequence[Rows], readonly: Mapping[str, bool]) -> None:
    """``name=()`` says: conflicts with nothing. Another row that says otherwise is a contradiction."""
    for row_name, other in (pair for r in rows for pair in _pairs(r, readonly)):
        if name not in (row_name, other) or (readonly[row_name] and readonly[other]):
            continue
        foe = row_name if other == name else other
        raise DeclarationError(
            f"{cls.__name__}: matrix row {name}=() says that {name!r} conflicts with nothing, but row "
            f'{row_name!r} states a conflict of the two: write {name}=("{foe}",), or take {name!r} out of '
            f"row {row_name!r} (a subclass's matrix can only add to that of its bases)"
        )
