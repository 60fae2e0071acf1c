"""What PostgreSQL's catalogue says of tables and views, as far as the order of rows may matter (postgres_order)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from objects.sql.postgres_connect import Raw

_OURS: Final = "n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'obo')"
_COLUMNS: Final = f"""
    SELECT c.oid::bigint, c.relname, c.relkind::text,
        EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal AND g.tgtype & 1 = 1),
        EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent)),
        coalesce(array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attnum > 0), '{{}}'),
        coalesce(array_agg(a.attname::text) FILTER (WHERE coalesce(b.typname, t.typname) IN ('float4', 'float8')
            OR coalesce(b.typtype, 'b') = 'd'), '{{}}'),
        coalesce(bool_or(a.attgenerated <> ''), false)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
    WHERE c.relkind IN ('r', 'p', 'v') AND {_OURS} GROUP BY c.oid, c.relname, c.relkind ORDER BY c.oid"""
#: Checked row by row: those that are not deferrable. Of an expression, or of some of the rows: any column may matter.
_INDEXES: Final = f"""
    SELECT i.indrelid::bigint, i.indisprimary, i.indimmediate, i.indpred IS NOT NULL OR i.indexprs IS NOT NULL,
        ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (number, place)
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {_OURS} AND (i.indisunique OR i.indisexclusion) ORDER BY i.indexrelid"""


class Relation(msgspec.Struct):
    """A table or a view. Those of one name in several schemas are one here: what holds for any of them counts."""

    columns: tuple[str, ...]
    plain: bool  # a table with rows of its own alone
    triggers: bool  # for each row
    key: tuple[str, ...] = ()
    unique: frozenset[str] = frozenset()  # columns whose values are checked row by row
    several: bool = False


class Facts(msgspec.Struct):
    relations: dict[str, Relation]
    floats: frozenset[str]  # columns that are of such a type in any table

    def is_exact(self, column: str) -> bool:
        """Is it the name of columns, none of which holds floats?"""
        return column not in self.floats and any(column in r.columns for r in self.relations.values())


def read_facts(raw: Raw) -> Facts:
    floats: set[str] = set()
    names: dict[int, str] = {}
    found: dict[int, Relation] = {}
    computed: set[int] = set()
    for oid, name, kind, triggers, inherits, columns, odd, generated in raw.execute(_COLUMNS).fetchall():
        names[oid] = name
        found[oid] = Relation(tuple(columns), kind == "r" and not inherits, triggers)
        floats.update(odd)
        if generated:
            computed.add(oid)
    for oid, primary, immediate, partial, columns in raw.execute(_INDEXES).fetchall():
        if oid in found:
            _add_index(found[oid], primary, immediate, partial or oid in computed, columns)
    relations: dict[str, Relation] = {}
    for oid, relation in found.items():
        name = names[oid]
        relations[name] = _both(relations[name], relation) if name in relations else relation
    return Facts(relations, frozenset(floats))


def _add_index(relation: Relation, primary: bool, immediate: bool, any_column: bool, columns: Sequence[str]) -> None:
    if primary:
        relation.key = tuple(columns)
    if immediate:
        relation.unique |= frozenset(relation.columns if any_column else columns)


def _both(one: Relation, other: Relation) -> Relation:
    return Relation(
        one.columns + other.columns,
        False,
        one.triggers or other.triggers,
        unique=one.unique | other.unique,
        several=True,
    )
