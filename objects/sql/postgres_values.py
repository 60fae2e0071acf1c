"""Python values for PostgreSQL: psycopg knows nearly all of them."""

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from objects.sql.errors import DataError
from objects.sql.postgres_clock import check_params, is_clock
from objects.sql.postgres_connect import Text
from objects.sql.result import Params
from objects.sql.statement import Statement


def adapted(statement: Statement, params: Params) -> Params:
    """Parameters as psycopg takes them. A dict is JSON, a list an array."""
    clocks: list[str] = []
    out: Params
    if isinstance(params, Mapping):
        out = {name: _adapt(value, clocks) for name, value in params.items()}
    else:
        out = [_adapt(value, clocks) for value in params]
    check_params(statement, clocks)
    return out


def _adapt(value: Any, clocks: list[str]) -> Any:
    kind = type(value)
    if kind is str and is_clock(value):
        clocks.append(value)
        return Text(value)
    if kind is dict:
        return Jsonb(value)
    if kind is list:
        return [_adapt(one, clocks) for one in value]
    if kind in (set, frozenset, tuple):
        raise DataError(f"{value!r:.80} is a {kind.__name__}: for an array pass a list")
    return value
