"""``obo sql explain`` and ``.explain``: what a statement touches, and what it would wait for."""

from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from objects.sql.client import Sql


def show(console: Console, db: "Sql", statement: str) -> None:
    console.print(str(db.explain(statement)), markup=False)
