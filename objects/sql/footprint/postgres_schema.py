"""The schema of a PostgreSQL database, from its catalogue.

Unlike SQLite, nothing tells what one statement will reach, so what code of users does is not known: a table with a
trigger is opaque, and so is one whose defaults or constraints call a function of users. Views are known by their rules.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from objects.sql.footprint.same import Sort
from objects.sql.footprint.schema import Action, Column, Reference, Schema, Table, Unique

if TYPE_CHECKING:
    import psycopg

_OURS: Final = "n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'obo')"

_TABLES: Final = f"""
    SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, c.relrowsecurity,
        EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent)),
        (SELECT min(t.tgname::text) FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),
        (SELECT min(w.rulename::text) FROM pg_rewrite w WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OURS}"""
_COLUMNS: Final = f"""
    SELECT c.oid::bigint, a.attnum, a.attname, t.typname, t.typtype::text, a.atttypmod, a.attgenerated <> '',
        a.atthasdef OR a.attidentity <> '', coalesce(k.collisdeterministic, true),
        (SELECT min(d.refobjid::regclass::text) FROM pg_depend d JOIN pg_attrdef f ON f.oid = d.objid
         JOIN pg_class s ON s.oid = d.refobjid WHERE d.classid = 'pg_attrdef'::regclass AND s.relkind = 'S'
         AND d.refclassid = 'pg_class'::regclass AND f.adrelid = c.oid AND f.adnum = a.attnum),
        CASE WHEN a.attidentity <> '' THEN pg_get_serial_sequence(c.oid::regclass::text, a.attname)::regclass::text END
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation k ON k.oid = a.attcollation
    WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped AND {_OURS} ORDER BY c.oid, a.attnum"""
_INDEXES: Final = f"""
    SELECT i.indrelid::bigint, i.indisprimary, i.indisunique, i.indpred IS NOT NULL OR i.indexprs IS NOT NULL,
        i.indkey::int2[]::int[], i.indnkeyatts, coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::bool, false),
        EXISTS (SELECT FROM pg_constraint x WHERE x.conindid = i.indexrelid AND x.contype = 'x')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {_OURS}
    ORDER BY i.indexrelid"""
_REFERENCES: Final = f"""
    SELECT k.conrelid::bigint, k.conkey::int[], k.confrelid::bigint, k.confkey::int[], k.confdeltype::text,
        k.confupdtype::text
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE k.contype = 'f' AND {_OURS} ORDER BY k.oid"""
#: What views read: each depends on the tables that its rule names.
_VIEWS: Final = """
    SELECT DISTINCT w.ev_class::bigint, d.refobjid::bigint FROM pg_rewrite w JOIN pg_depend d
    ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
    WHERE d.refobjid <> w.ev_class"""
_FUNCTIONS: Final = f"""
    SELECT p.oid::bigint, p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {_OURS}"""
#: Tables and views that call functions of users, in defaults, constraints, indexes, rules.
_CALLERS: Final = """
    SELECT DISTINCT coalesce(f.adrelid, k.conrelid, i.indrelid, w.ev_class, 0)::bigint FROM pg_depend d
    LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
    LEFT JOIN pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid
    LEFT JOIN pg_index i ON d.classid = 'pg_class'::regclass AND i.indexrelid = d.objid
    LEFT JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
    WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = ANY(%s::oid[]) AND d.classid <> 'pg_trigger'::regclass"""

_ACTIONS: Final[Mapping[str, Action]] = {"c": "change", "n": "change", "d": "default"}
_SORTS: Final[Mapping[str, Sort]] = {
    "int2": "pg int", "int4": "pg int", "int8": "pg int", "numeric": "pg int", "text": "pg text",
    "varchar": "pg text", "bpchar": "pg text", "uuid": "pg uuid", "bytea": "pg bytes", "bool": "pg bool",
    "date": "pg date",
}  # fmt: skip


def read_postgres(connection: "psycopg.Connection[Any]", version: int) -> Schema:
    """``version``: what the database says of itself; read it in the same transaction."""
    found = {oid: rest for oid, *rest in connection.execute(_TABLES).fetchall()}
    names = {oid: name if space == "public" else f"{space}.{name}" for oid, (space, name, *_) in found.items()}
    functions = dict(connection.execute(_FUNCTIONS).fetchall())
    callers = {oid for (oid,) in connection.execute(_CALLERS, (list(functions),)).fetchall()} if functions else set()
    columns: dict[int, dict[int, Column]] = defaultdict(dict)
    for oid, number, *about in connection.execute(_COLUMNS).fetchall():
        columns[oid][number] = _column(*about)
    indexes: dict[int, list[Any]] = defaultdict(list)
    for oid, *about in connection.execute(_INDEXES).fetchall():
        indexes[oid].append(about)
    references = [
        _reference(names, columns, *about)
        for about in connection.execute(_REFERENCES).fetchall()
        if about[0] in names and about[2] in names
    ]
    tables = {}
    for oid, (_, _, kind, guarded, inherits, trigger, rule) in found.items():
        # who may see which rows is decided by policies, which may read anything; 0 is a type that calls a function
        if kind in ("r", "p") and not guarded and 0 not in callers:
            name = names[oid]
            opaque = _opaque(inherits, trigger, rule, oid in callers)
            tables[name] = _table(name, columns[oid], indexes[oid], references, opaque)
    views = _views(connection, found, names, callers)
    return Schema(version, "postgres", tables, views, unknown=frozenset(functions.values()), templates={})


def _opaque(inherits: bool, trigger: str | None, rule: str | None, calls: bool) -> str:
    if trigger:
        return f"what its trigger {trigger} does is not known before"
    if rule:
        return f"what its rule {rule} does is not known before"
    if inherits:
        return "its rows belong to several tables"
    return "it calls a function of users" if calls else ""


def _column(
    name: str, kind: str, sort: str, modifier: int, computed: bool, default: bool, plain: bool, *sequences: str | None
) -> Column:
    found: Sort = "pg text" if sort == "e" else _SORTS.get(kind, "other")
    if not plain or (kind == "numeric" and modifier >= 0 and (modifier - 4) & 0x400):  # a scale below 0 rounds integers
        found = "other"
    return Column(name, found, default and not computed, computed, next((s for s in sequences if s), None))


def _table(
    name: str, columns: Mapping[int, Column], indexes: list[Any], references: list[Reference], opaque: str
) -> Table:
    key: tuple[str, ...] = ()
    uniques: list[Unique] = []
    odd = ""
    for primary, unique, partial, numbers, count, nulls, excludes in indexes:
        if primary:
            key = tuple(columns[n].name for n in numbers[:count])
        elif excludes or (unique and partial):
            odd = "an exclusion constraint, or a unique index on an expression or on some of the rows"
        elif unique:
            parts = tuple(columns[n].name for n in numbers[:count])
            uniques.append(Unique(",".join(parts), parts, nulls))
    return Table(
        name,
        {c.name: c for c in columns.values()},
        tuple(c.name for c in columns.values()),
        key,
        odd=odd,
        opaque=opaque,
        uniques=tuple(uniques),
        references=tuple(r for r in references if r.child == name),
        referrers=tuple(r for r in references if r.parent == name),
    )


def _reference(
    names: Mapping[int, str],
    columns: Mapping[int, Mapping[int, Column]],
    child: int,
    own: list[int],
    parent: int,
    other: list[int],
    on_delete: str,
    on_update: str,
) -> Reference:
    return Reference(
        names[child],
        tuple(columns[child][n].name for n in own),
        names[parent],
        tuple(columns[parent][n].name for n in other),
        _ACTIONS.get(on_delete, "refuse"),
        _ACTIONS.get(on_update, "refuse"),
    )


def _views(
    connection: "psycopg.Connection[Any]", found: Mapping[int, Any], names: Mapping[int, str], callers: set[int]
) -> dict[str, frozenset[str]]:
    """To the tables at their ends. A view that calls functions of users, or reads what is not known, is left out."""
    direct: dict[int, set[int]] = defaultdict(set)
    for view, read in connection.execute(_VIEWS).fetchall():
        direct[view].add(read)

    def ends(oid: int, seen: frozenset[int]) -> set[str] | None:
        if oid not in found or oid in callers or oid in seen:
            return None
        if found[oid][2] in ("r", "p"):
            return {names[oid]}
        parts = [ends(read, seen | {oid}) for read in direct[oid]] if found[oid][2] == "v" else [None]
        return None if None in parts else set().union(*(p for p in parts if p is not None))

    views = {names[oid]: ends(oid, frozenset()) for oid, (_, _, kind, *_) in found.items() if kind == "v"}
    return {name: frozenset(read) for name, read in views.items() if read is not None}
