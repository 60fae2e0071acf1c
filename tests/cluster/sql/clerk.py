"""An object whose methods call a database: what they did is undone with them."""

from framework import Object, RemoteError, conflict_matrix, method
from objects.sql import Database

INSERT = "INSERT INTO log (what) VALUES (?) RETURNING id"


@conflict_matrix(note="*", both="*")
class Clerk(Object):
    def __init__(self) -> None:
        self.notes: list[str] = []

    @method
    def note(self, what: str, fails: bool) -> int:
        self.notes.append(what)
        found = self.orb.object(Database, "db").execute(INSERT, (what,))
        if fails:
            raise ValueError("on purpose")
        return int(found.scalar())

    @method
    def both(self, other: str) -> int:
        """What the first callee did is undone alone, and this goes on."""
        clerk = self.orb.object(Clerk, other)
        try:
            clerk.note("undone", True)
        except RemoteError:
            self.notes.append("caught")
        return int(clerk.note("kept", False))
