"""Where PostgreSQL would go by the order in which rows lie on disk, which differs from replica to replica.

    UPDATE t SET id = id - 1        a unique value is checked row by row: it fails or not, by their order
    a trigger for each row          whatever it numbers, it numbers in their order
    UPDATE t ... FROM u             if two rows of u match, the server takes either

In the first two cases rows are changed in the order of the primary key: they are looked for and sorted first, and then
found again one by one. In the third it is looked whether two match. What stands in ORDER BY and in aggregates is the
matter of postgres_ties. All of it stands on the catalogue, so it is done where a statement is performed.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import msgspec

from objects.sql.errors import ProgrammingError, shown
from objects.sql.postgres_change import Change, change_of, top
from objects.sql.postgres_connect import Raw
from objects.sql.postgres_facts import Facts, Relation, read_facts
from objects.sql.postgres_text import postgres_text
from objects.sql.postgres_ties import check_body, settled
from objects.sql.result import Params
from objects.sql.statement import Statement
from objects.sql.tokens import Token, tokens
from objects.sql.values import quote

#: With these a join begins with the sorted rows: no other plan is left that would not cost a thousand times more.
PLANNER: Final = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_material")
_REMEMBERED: Final = 2048
_ON_DISK: Final = "rows would be changed in the order in which they lie on disk"
_KEYS: Final = "use subqueries, SET a = (SELECT ...) WHERE id IN (SELECT ...)"
_MOVING: Final = ("insert", "update", "delete", "merge")


class Plan(msgspec.Struct, frozen=True):
    """How a statement is performed: ``run`` has the n-th parameter as :pn. ``probe``: it must give no row."""

    run: str
    probe: str = ""
    ordered: bool = False


def plan(statement: Statement, facts: Facts) -> Plan | None:
    """None: as it is. ProgrammingError if it cannot be made the same everywhere."""
    text, found = statement.plain, tokens(statement.plain, "postgres")
    try:
        return _planned(text, found, statement, facts)
    except ProgrammingError as error:
        raise ProgrammingError(f"{error}; in: {shown(statement.text)}") from None


def _planned(text: str, found: list[Token], statement: Statement, facts: Facts) -> Plan | None:
    if statement.kind == "ddl":
        _check_functions(text, found, facts)
    new = settled(text, found, statement.kind, facts)
    changed = new != text
    if changed:
        text, found = new, tokens(new, "postgres")
    moves = _check_inner(text, found, facts)
    main = _main(found)
    made = change_of(text, found[main:])
    if made is None:
        if found[main].is_("update", "delete"):
            raise ProgrammingError("it is not understood which rows it changes: write it in a simpler way")
        return Plan(_run(text)) if changed else None
    before = text[: found[main].start]
    relation = facts.relations.get(made.table)
    why = _why(made, relation, facts)
    if made.sources and (moves or why):
        where = why or "beside a WITH that changes data"
        raise ProgrammingError(f"FROM and USING are refused {where}: {_ON_DISK}: {_KEYS}")
    if why and relation and relation.plain:
        return Plan(_run(_in_order(before, made, relation)), ordered=True)
    if why:
        raise ProgrammingError(f"{made.verb.upper()} is refused {why}: {_ON_DISK}: change the table itself")
    probe = _probe(before, made)
    return Plan(_run(text), probe) if changed or probe else None


def _main(found: list[Token]) -> int:
    """Where the statement begins that WITH belongs to."""
    if not found[0].is_("with"):
        return 0
    return next((i for i, t in top(found) if t.is_("select", "values", "table", *_MOVING)), 0)


def values(statement: Statement, adapted: Params) -> Mapping[str, object]:
    """The parameters of a plan."""
    return {f"p{i}": adapted[which] for i, which in enumerate(statement.params)}  # type: ignore[call-overload, index]


def _run(text: str) -> str:
    return postgres_text(text, tokens(text, "postgres"))


def _why(made: Change, relation: Relation | None, facts: Facts) -> str:
    """Why the order of rows matters."""
    if relation is None:
        return ""  # the server will not know it either
    if not relation.plain and (made.computed or any(r.triggers for r in facts.relations.values())):
        return "through a view or a partitioned table"
    if relation.triggers:
        return "with a trigger for each row"
    if made.verb == "update" and made.computed & relation.unique:
        return "with new values of a unique constraint"
    return ""


def _in_order(before: str, made: Change, relation: Relation) -> str:
    own = made.called
    keys = ", ".join(f"{own}.{quote(column)}" for column in relation.key) or f"({own}.*)::text"
    where = f" WHERE {made.where}" if made.where else ""
    start = f"{before.rstrip()}," if before else "WITH"
    rows = f"{start} _obo_rows AS MATERIALIZED (SELECT {own}.ctid AS _obo_at FROM {made.target}{where} ORDER BY {keys})"
    found = f"{own}.ctid = _obo_rows._obo_at"
    told = f"{own}.*" if made.returning == "*" else made.returning
    returning = f" RETURNING {told}" if told else ""
    if made.verb == "delete":
        return f"{rows} DELETE FROM {made.target} USING _obo_rows WHERE {found}{returning}"
    return f"{rows} UPDATE {made.target} SET {made.values} FROM _obo_rows WHERE {found}{returning}"


def _probe(before: str, made: Change) -> str:
    if made.verb != "update" or not made.sources:
        return ""
    where = f" WHERE {made.where}" if made.where else ""
    own = made.called
    return _run(
        f"{before}SELECT 1 FROM {made.target}, {made.sources}{where} GROUP BY {own}.tableoid, {own}.ctid "
        "HAVING count(*) > 1 LIMIT 1"
    )


def _check_inner(text: str, found: list[Token], facts: Facts) -> bool:
    """WITH x AS (UPDATE ...): rows of it are not put in order. Is there anything of the kind?"""
    moves = False
    for i, (bracket, verb) in enumerate(pairwise(found)):
        if bracket.value != "(" or not verb.is_(*_MOVING) or not _is_statement(found, i + 1):
            continue
        moves = True
        made = change_of(text, found[i + 1 : _closing(found, i)])
        if verb.is_("insert"):
            continue
        if made is None or made.sources or _why(made, facts.relations.get(made.table), facts):
            raise ProgrammingError(
                f"{verb.value.upper()} within WITH is refused here: {_ON_DISK}: make it a statement of its own, in "
                "transaction([...])"
            )
    return moves


def _is_statement(found: list[Token], at: int) -> bool:
    """And no column of that name."""
    return at + 1 < len(found) and (found[at + 1].names() or found[at + 1].is_("into", "from", "only"))


def _closing(found: list[Token], at: int) -> int:
    depth = 0
    for i in range(at, len(found)):
        if found[i].sort == "op" and found[i].value in "()":
            depth += 1 if found[i].value == "(" else -1
            if depth == 0:
                return i
    return len(found)


def _check_functions(text: str, found: list[Token], facts: Facts) -> None:
    for before, token in pairwise(found):
        if before.is_("as") and token.sort == "string" and text[token.start] == "$":
            check_body(token.value, tokens(token.value, "postgres"), facts)


class Plans:
    """Of the statements that were performed so far, for the schema as it is in the open batch."""

    def __init__(self) -> None:
        self._facts: Facts | None = None
        self._plans: dict[str, Plan | None] = {}

    def forget(self) -> None:
        """The schema is another one, or may be."""
        self._facts = None
        self._plans.clear()

    def of(self, raw: Raw, statement: Statement) -> Plan | None:
        if statement.kind in ("select", "analyze"):
            return None
        if statement.text in self._plans:
            return self._plans[statement.text]
        if self._facts is None:
            self._facts = read_facts(raw)
        found = plan(statement, self._facts)
        if len(self._plans) >= _REMEMBERED:
            self._plans.clear()
        self._plans[statement.text] = found
        return found
