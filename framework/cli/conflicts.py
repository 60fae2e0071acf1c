"""``obo conflicts objects.bank:Bank``: the conflict matrix of a class as a table."""

import typer


def run(target: str) -> None:
    """Show which methods of a class conflict."""
    typer.echo(target)
