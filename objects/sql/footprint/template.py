"""Effects, made ready for parameters: with new ones only the keys are computed. This is the way of every call.

t              table t, or: rows of it
t␟#5           its row with primary key 5
t␞i            its unique constraint i, and t␞i␟ann a value of it
␝s             the sequence s
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from framework import Keys, Mode
from objects.sql.footprint.effects import Access, Constant, Effects, Row, Source, Taken
from objects.sql.footprint.same import Same, Sort, same

ROW: Final = "\x1f"
CONSTRAINT: Final = "\x1e"
SEQUENCE: Final = "\x1d"

#: More keys than this are not told one by one.
MOST_KEYS: Final = 128

Params = Sequence[Any] | Mapping[str, Any]
#: A key from the parameters; "" if there is none to tell, None if it is not certain.
Find = Callable[[Any], str | None]

_STRONGER: Final[Mapping[frozenset[Mode], Mode]] = {
    frozenset[Mode]({"r", "ir"}): "r",
    frozenset[Mode]({"ir", "iw"}): "iw",
}


def both(a: Mode, b: Mode) -> Mode:
    """One mode for a key that is touched in two."""
    return a if a == b else _STRONGER.get(frozenset({a, b}), "w")


class Template(msgspec.Struct, frozen=True, eq=False):
    """``fixed``: keys that do not depend on parameters. ``finds``: the others. ``wide``: the keys when a value is one
    that cannot be told, None for everything. ``why``: for each table that is touched as a whole."""

    fixed: tuple[tuple[str, Mode], ...]
    finds: tuple[tuple[Find, Mode], ...]
    wide: Keys | None
    why: Mapping[str, str]
    unknown: str = ""

    def keys(self, params: Params) -> Keys | None:
        if not self.finds:
            return self.wide
        out = dict(self.fixed)
        for find, mode in self.finds:
            key = find(params)
            if key is None:
                return self.wide
            if key:
                out[key] = mode if key not in out else both(mode, out[key])
        return tuple(out.items())


def everything(why: str) -> Template:
    return Template((), (), None, {}, why)


def template(effects: Effects) -> Template:
    if effects.unknown:
        return everything(effects.unknown)
    rows = [r for r in effects.rows if not _covered(effects, r.table.name, r.access)]
    written = {r.table.name for r in rows if r.access == "w"}
    fixed: dict[str, Mode] = {}

    def put(key: str, mode: Mode) -> None:
        fixed[key] = both(mode, fixed[key]) if key in fixed else mode

    for name, access in effects.whole.items():
        put(name, "w" if name in written else access)
    wide = dict(fixed)
    for name in sorted({r.table.name for r in rows}):
        put(name, "iw" if name in written else "ir")
        wide[name] = both("w" if name in written else "r", wide.get(name, "r"))
    rows = [r for r in rows if fixed[r.table.name] in ("ir", "iw")]
    for sequence in sorted(effects.sequences):
        put(SEQUENCE + sequence, "w")
        wide[SEQUENCE + sequence] = "w"
    for table, name in sorted(
        effects.given_back | effects.moved | {(t.table.name, t.unique.name) for t in effects.taken}
    ):
        if fixed.get(table) == "iw":
            put(f"{table}{CONSTRAINT}{name}", _mode(effects, table, name))
    taken = [t for t in effects.taken if fixed.get(f"{t.table.name}{CONSTRAINT}{t.unique.name}") == "iw"]
    finds: tuple[tuple[Find, Mode], ...] = (*((_row(r), r.access) for r in rows), *((_value(t), "w") for t in taken))
    if len(finds) > MOST_KEYS:
        finds, fixed = (), wide
    return Template(tuple(fixed.items()), finds, tuple((wide if finds else fixed).items()), effects.why)


def _covered(effects: Effects, table: str, access: Access) -> bool:
    """Is the row part of a whole that is touched so, or more?"""
    whole = effects.whole.get(table)
    return whole == "w" or (whole == "r" and access == "r")


def _mode(effects: Effects, table: str, name: str) -> Mode:
    known = any(t.table.name == table and t.unique.name == name for t in effects.taken)
    back = (table, name) in effects.given_back
    if (table, name) in effects.moved or (known and back):
        return "w"
    return "iw" if known else "r"


def _row(row: Row) -> Find:
    columns: list[tuple[Sort, ...]] = [(row.table.columns[k].sort,) for k in row.table.key]
    if row.of is not None:
        child, names = row.of
        columns = [(*c, child.columns[n].sort) for c, n in zip(columns, names, strict=True)]
    texts = [tuple(same(sort) for sort in sorts) for sorts in columns]
    return _find(row.table.name + ROW, row.sources, texts, row.of is not None)


def _value(taken: Taken) -> Find:
    texts = [(same(taken.table.columns[c].sort),) for c in taken.unique.columns]
    start = f"{taken.table.name}{CONSTRAINT}{taken.unique.name}{ROW}"
    return _find(start, taken.sources, texts, not taken.unique.nulls)


def _find(start: str, sources: Sequence[Source], texts: Sequence[tuple[Same, ...]], skips: bool) -> Find:
    """``skips``: NULL means that there is nothing."""
    if all(isinstance(s, Constant) for s in sources):
        known = _several(start, sources, texts, skips)(())
        return lambda params: known
    if len(sources) == 1 and len(texts[0]) == 1 and not isinstance(sources[0], Constant):
        return _single(start, sources[0].at, texts[0][0], skips)
    return _several(start, sources, texts, skips)


def _single(start: str, at: Any, text: Same, skips: bool) -> Find:
    """The usual one: a key of one column."""

    def find(params: Any) -> str | None:
        value = params[at]
        if value is None:
            return "" if skips else None
        found = text(value)
        return None if found is None else start + found

    return find


def _several(start: str, sources: Sequence[Source], texts: Sequence[tuple[Same, ...]], skips: bool) -> Find:
    def find(params: Any) -> str | None:
        parts: list[str] = []
        certain = True
        for source, each in zip(sources, texts, strict=True):
            value = source.value if isinstance(source, Constant) else params[source.at]
            if value is None and skips:
                return ""
            found = {text(value) for text in each}
            part = found.pop() if len(found) == 1 else None
            certain = certain and value is not None and part is not None
            parts.append(part or "")
        if not certain:
            return None
        return start + (parts[0] if len(parts) == 1 else "".join(f"{len(p)}:{p}" for p in parts))

    return find
