"""A database without nodes around it: calls are performed as a node would, in batches."""

import random
import uuid

from framework import Place, performing
from objects.sql import Database

NOW = 1_700_000_000.123


class Request:
    """What a request brings along."""

    orb = None

    def __init__(self, number=0, basis=None, now=NOW):
        self._chance = random.Random(number)
        self._now = now
        self.basis = basis

    def now(self):
        return self._now

    def random(self):
        return self._chance.random()

    def uuid(self):
        return uuid.UUID(int=self._chance.getrandbits(128), version=4)


class Replica:
    def __init__(self, directory, node="n1", begun=True, **options):
        self.place = Place(f"db@{node}", "db", node, directory / node, options)
        self.database = Database()
        self.database.open(self.place)
        if begun and self.database.recall() is None:
            self.database.begin()
            self.database.commit([], b"first")

    def batch(self, *calls, entries=(b"entry",)):
        """Calls are (method, argument, ...): what they gave, or what they raised."""
        self.database.begin()
        out = [self.call(*call, number=number) for number, call in enumerate(calls)]
        self.database.commit(list(entries))
        return out

    def call(self, method, *arguments, number=0, basis=None, now=NOW):
        with performing(Request(number, basis, now)):
            try:
                return getattr(self.database, method)(*arguments)
            except Exception as error:
                return error

    def do(self, sql, params=(), **more):
        """One statement in a batch of its own; what it raised is raised."""
        self.database.begin()
        out = self.call("execute", sql, params, **more)
        self.database.commit([])
        if isinstance(out, Exception):
            raise out
        return out

    def ask(self, sql, params=()):
        out = self.call("query", sql, params)
        if isinstance(out, Exception):
            raise out
        return out.rows

    def reopen(self):
        self.database.close()
        self.database = Database()
        self.database.open(self.place)

    def close(self):
        self.database.close()
