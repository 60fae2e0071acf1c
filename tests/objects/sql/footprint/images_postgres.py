"""Images on a real PostgreSQL server: columns have types there, rows no order, and sequences are not rolled back.

A statement is what the product would send: its text, its parameters as psycopg writes them, its time and chance before
it, and the plan that keeps rows in an order (``objects.sql.postgres_order``). It goes by libpq's pipeline: the partners
of a statement travel together, each between a savepoint and its rollback, and none waits for the answer to another.
Sequences are put back before each statement, since a rollback does not do that, and read after it.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from sqlalchemy import make_url

from objects.sql import postgres_notes
from objects.sql.errors import SqlError
from objects.sql.footprint import Schema, read_postgres
from objects.sql.postgres_connect import Raw, writer
from objects.sql.postgres_order import PLANNER, Plans, values
from objects.sql.postgres_values import adapted
from objects.sql.statement import Statement, understand
from objects.sql.tokens import Dialect
from tests.objects.sql.footprint.images import Call, Outcome, Request, Taken

_TOGETHER = 12  # statements in one pipeline: neither end may wait for room while the other does
_TABLES = """SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind = ANY(%s) ORDER BY 1"""
_LEFT = b"25P02"  # a statement before it failed


class Command(NamedTuple):
    """A text, and parameters with their types and formats. ``name``: of a statement that is prepared."""

    text: bytes
    params: Sequence[Any] = ()
    types: Sequence[int] = ()
    formats: Sequence[Any] = ()
    name: bytes = b""


class Sent(NamedTuple):
    """``probe``: it must give no row (postgres_order); ``run`` is the statement itself."""

    commands: list[Command]
    probe: int | None
    run: int
    single: bool


class Postgres:
    dialect: Dialect = "postgres"

    def __init__(self, url: str) -> None:
        self._raw: Raw = writer(make_url(url), "images", True)
        self._raw.prepare_threshold = None  # its names would go with ours
        postgres_notes.make(self._raw)
        self._pq = self._raw.pgconn
        self._request = Request()
        self._plans = Plans()
        self._prepared: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._sent: dict[int, Sent | str] = {}
        self._state = self._look = Command(b"SELECT 1")
        self._rows: list[str] = []
        self._sequences: list[str] = []
        self._raw.execute("BEGIN")
        self._raw.execute("SAVEPOINT bare; SAVEPOINT image")
        self._base = ""

    def close(self) -> None:
        self._raw.close()

    # the image

    def make(self, schema: Sequence[str]) -> Schema:
        raw = self._raw
        raw.execute("ROLLBACK")
        raw.execute("DEALLOCATE ALL")
        self._prepared.clear()
        self._plans.forget()
        raw.execute("BEGIN")
        for text in schema:
            self._try(understand(text, "postgres"), ())
        raw.execute("SAVEPOINT image")
        self._rows = [name for (name,) in raw.execute(_TABLES, (["r"],)).fetchall()]
        self._sequences = [name for (name,) in raw.execute(_TABLES, (["S"],)).fetchall()]
        digest = " UNION ALL ".join(f"SELECT '{name} ' || t.*::text FROM {name} t" for name in self._rows)
        of = f"SELECT sum(hashtextextended(x, 0)::numeric) FROM ({digest or 'SELECT 1'}) AS s (x)"
        self._state = self._prepare(_command(of))
        self._look = self._prepare(_command(_looks(self._sequences)))
        return read_postgres(raw, 1)

    def fill(self, rows: Sequence[Call]) -> None:
        self._raw.execute("ROLLBACK TO image")
        self._sent.clear()
        for text, params in rows:
            self._try(understand(text, "postgres"), params)
        marks = [(name, 5, True) for name in self._sequences]
        self._base = _put(marks)

    def _try(self, statement: Statement, params: Sequence[Any]) -> None:
        self._raw.execute("SAVEPOINT one")
        try:
            self._raw.execute(statement.run, adapted(statement, params))
        except psycopg.Error:
            self._raw.execute("ROLLBACK TO one")
        self._raw.execute("RELEASE one")

    # statements

    def after(self, first: Taken, others: Sequence[Taken]) -> tuple[Outcome, list[tuple[Outcome, Any]]]:
        for call in (first, *others):
            if call.number not in self._sent:
                self._sent[call.number] = self._made(call)
        self._raw.execute("SAVEPOINT one")
        outcome, state, marks = self._first(first)
        found: list[tuple[Outcome, Any]] = []
        for start in range(0, len(others), _TOGETHER):
            found += self._others(others[start : start + _TOGETHER], state, _put(marks))
        self._raw.execute("ROLLBACK TO one")
        self._raw.execute("RELEASE one")
        return outcome, found

    def _first(self, call: Taken) -> tuple[Outcome, Any, list[tuple[str, int, bool]]]:
        """Performed to stay, if it is right; with the state and the sequences after it."""
        with self._pipeline() as pipe:
            pipe.send(_command("SAVEPOINT two"))
            sent = self._send(pipe, call, self._base)
            pipe.sync()
            results = pipe.read()
        outcome = self._outcome(sent, results[1:])
        if not outcome.good:
            self._raw.execute("ROLLBACK TO two")
        self._raw.execute("RELEASE two")
        state = self._raw.execute(self._state.text.decode()).fetchone()
        return outcome, str(state[0] if state else None).encode(), self._marks()

    def _others(self, calls: Sequence[Taken], before: Any, marks: str) -> Iterator[tuple[Outcome, Any]]:
        with self._pipeline() as pipe:
            sizes = []
            for call in calls:
                pipe.send(_command("SAVEPOINT two"))
                sent = self._send(pipe, call, marks)
                pipe.sync()
                pipe.send(self._state)
                pipe.sync()
                pipe.send(_command("ROLLBACK TO two"))
                pipe.send(_command("RELEASE two"))
                if self._sequences:
                    pipe.send(self._look)
                pipe.sync()
                sizes.append(sent)
            results = iter(pipe.read())
        for sent in sizes:
            next(results)
            outcome = self._outcome(
                sent, [next(results) for _ in range(1 if isinstance(sent, str) else len(sent.commands) + 2)]
            )
            state = next(results)
            kept = before if not outcome.good else _cell(state)
            next(results)
            next(results)
            moved = _grid(next(results)) if self._sequences else ()
            yield outcome, (kept, moved)

    def _send(self, pipe: "Pipe", call: Taken, marks: str) -> Sent | str:
        """A text: it is an error before it is sent."""
        sent = self._sent[call.number]
        pipe.send(_command(marks))
        if isinstance(sent, str):
            return sent
        self._request.begin(call.number)
        moment = dt.datetime.fromtimestamp(self._request.now(), dt.UTC).isoformat()
        seed = self._request.uuid().hex
        pipe.send(
            _command(f"SELECT set_config('obo.given', '{moment} {seed}', true), set_config('obo.draw', '0', true)")
        )
        for command in sent.commands:
            pipe.send(command)
        return sent

    def _made(self, call: Taken) -> Sent | str:
        statement = call.statement
        try:
            plan = self._plans.of(self._raw, statement)
            given = adapted(statement, call.params)
            if plan is None:
                return Sent([self._written(statement.run, given)], None, 0, statement.single)
            named = values(statement, given)
            commands = []
            if plan.probe:
                commands.append(self._written(plan.probe, named))
            if plan.ordered:
                commands.append(_command(_settings("off")))
            commands.append(self._written(plan.run, named))
            run = len(commands) - 1
            if plan.ordered:
                commands.append(_command(_settings("on")))
            return Sent(commands, 0 if plan.probe else None, run, statement.single)
        except SqlError as error:
            return f"{type(error).__name__}: {error}"

    def _written(self, text: str, params: Any) -> Command:
        """By the rules of psycopg, whose parameters have types of their own."""
        query = psycopg._queries.PostgresQuery(Transformer(self._raw))
        query.convert(text, params)
        return self._prepare(Command(query.query, query.params or (), query.types, query.formats or ()))

    def _prepare(self, command: Command) -> Command:
        """It is parsed once for a schema; one that is wrong says so when it is performed."""
        name = self._prepared.get((command.text, tuple(command.types)))
        if name is None:
            name = f"image{len(self._prepared)}".encode()
            self._raw.execute("SAVEPOINT one")
            if self._pq.prepare(name, command.text, command.types).status != pq.ExecStatus.COMMAND_OK:
                self._raw.execute("ROLLBACK TO one")
                name = b""
            self._raw.execute("RELEASE one")
            self._prepared[command.text, tuple(command.types)] = name
        return command._replace(name=name)

    def _pipeline(self) -> "Pipe":
        return Pipe(self._pq)

    def _outcome(self, sent: Sent | str, results: Sequence[pq.abc.PGresult]) -> Outcome:
        if isinstance(sent, str):
            return Outcome(False, sent)
        given = results[2:]
        for result in given:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                return Outcome(False, (result.error_field(pq.DiagnosticField.SQLSTATE),
                                       result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY),
                                       result.error_field(pq.DiagnosticField.MESSAGE_DETAIL)))  # fmt: skip
            if result.status == pq.ExecStatus.PIPELINE_ABORTED:
                return Outcome(False, "not performed")
        if sent.probe is not None and given[sent.probe].ntuples:
            return Outcome(False, "two rows of FROM match one row")
        found = given[sent.run]
        if sent.single and (found.command_tuples or 0) > 1:
            return Outcome(False, "random() in several rows")
        return Outcome(True, (found.command_status, _grid(found)))

    # state

    def _marks(self) -> list[tuple[str, int, bool]]:
        if not self._sequences:
            return []
        rows = self._raw.execute(_looks(self._sequences)).fetchall()
        return [(name, value, called) for name, (value, called) in zip(self._sequences, rows, strict=True)]

    def shown(self, first: Taken, second: Taken) -> str:
        self._raw.execute("SAVEPOINT one")
        _, _, marks = self._first(first)
        kept, self._base = self._base, _put(marks)
        self._first(second)
        self._base = kept
        out = [str(self._marks())]
        for name in self._rows:
            out += sorted(f"{name} {row}" for row in self._raw.execute(f"SELECT * FROM {name}").fetchall())
        self._raw.execute("ROLLBACK TO one")
        self._raw.execute("RELEASE one")
        return "\n".join(out)


class Pipe:
    """Commands that are sent without waiting."""

    def __init__(self, connection: pq.abc.PGconn) -> None:
        self._pq = connection
        self._kinds: list[str] = []

    def __enter__(self) -> "Pipe":
        self._pq.enter_pipeline_mode()
        return self

    def __exit__(self, *_: object) -> None:
        self._pq.exit_pipeline_mode()

    def send(self, command: Command) -> None:
        text, params, types, formats, name = command
        if name:
            self._pq.send_query_prepared(name, params or None, formats or None)
        else:
            self._pq.send_query_params(text, params or None, types or None, formats or None)
        self._kinds.append("query")

    def sync(self) -> None:
        self._pq.pipeline_sync()
        self._kinds.append("sync")

    def read(self) -> list[pq.abc.PGresult]:
        out = []
        for kind in self._kinds:
            result = self._pq.get_result()
            assert result is not None
            if kind == "query":
                out.append(result)
                ended = self._pq.get_result()
                assert ended is None
        self._kinds.clear()
        return out


def _command(text: str) -> Command:
    return Command(text.encode())


def _settings(value: str) -> str:
    return "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name in PLANNER)


def _put(marks: Sequence[tuple[str, int, bool]]) -> str:
    return "SELECT " + (", ".join(f"setval('{n}', {value}, {called})" for n, value, called in marks) or "1")


def _looks(names: Sequence[str]) -> str:
    return " UNION ALL ".join(f"SELECT last_value, is_called FROM {name}" for name in names) or "SELECT 1"


def _grid(result: pq.abc.PGresult) -> tuple[tuple[bytes | None, ...], ...]:
    """In any order: rows have none."""
    rows = [tuple(result.get_value(i, k) for k in range(result.nfields)) for i in range(result.ntuples)]
    return tuple(sorted(rows, key=repr) if len(rows) > 1 else rows)


def _cell(result: pq.abc.PGresult) -> bytes | None:
    return result.get_value(0, 0) if result.ntuples else b"no state"


@contextmanager
def postgres(url: str) -> Iterator[Postgres]:
    made = Postgres(url)
    try:
        yield made
    finally:
        made.close()
