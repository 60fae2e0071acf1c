"""Random calls at two replicas, each in an order and in batches of its own, beside one plain database.

What conflicts stays in order, all else may change places: the answers are the same, those of the plain database, and so
is the state in the end.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from framework import Footprint, OboError, declaration
from objects.sql import Database
from tests.cluster.sql.mixes import programs
from tests.cluster.sql.model import PostgresModel, SqliteModel, outcomes
from tests.tiers import examples

MIXES = settings(
    max_examples=examples(10, 200),
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
RELATION = declaration(Database).relation


@pytest.fixture(scope="module")
def group(tmp_path_factory, request):
    """Made once: replicas are emptied between mixes."""
    made = {}

    def get(dialect):
        if dialect not in made:
            made[dialect] = Group(dialect, tmp_path_factory.mktemp(dialect), request)
        return made[dialect]

    yield get
    for one in made.values():
        one.close()


class Group:
    def __init__(self, dialect, directory, request):
        from tests.objects.sql.replica import Replica

        self.dialect = dialect
        options = {"durability": "relaxed"}
        if dialect == "postgres":
            servers = request.getfixturevalue("postgres_servers")
            options["urls"] = {node: server.create("mixes") for node, server in servers.items()}
            self._url = servers["n3"].create("model")
        self.replicas = [Replica(directory, node, **options) for node in ("n1", "n2")]

    def model(self):
        return SqliteModel() if self.dialect == "sqlite" else PostgresModel(self._url)

    def begin(self, texts):
        for one in self.replicas:
            for text in texts:
                one.do(text, number=text)
        assert not difference(self.replicas)

    def close(self):
        for one in self.replicas:
            one.close()


def difference(replicas):
    """Empty if the databases are equal."""
    one, other = (replica.database for replica in replicas)
    if one.fingerprint() == other.fingerprint():
        return []
    told = [{**d.digest(), "schema": "; ".join(d.schema()), "version": d._engine.version} for d in (one, other)]
    return [(k, told[0].get(k), told[1].get(k)) for k in told[0] | told[1] if told[0].get(k) != told[1].get(k)] or "?"


class Call:
    def __init__(self, number, method, values):
        self.number, self.method, self.values = number, method, values

    def judge(self, database):
        """As the node that takes the call does; a call that is refused then is not performed."""
        try:
            touched = database.touched(self.method, self.values)
        except OboError:
            return False
        self.footprint = Footprint(self.method, touched.keys, self.method == "query")
        self.basis = touched.basis
        return True

    def perform(self, replica, dialect):
        found = replica.call(self.method, *self.values, number=self.number, basis=self.basis)
        failed = isinstance(found, Exception)
        return outcomes(self.method, self.values, found, type(found).__name__ if failed else "")


def reordered(calls, chance):
    """Another order in which what conflicts stays where it is."""
    left, out = list(calls), []
    while left:
        free = [c for i, c in enumerate(left) if not any(RELATION.conflict(c.footprint, e.footprint) for e in left[:i])]
        out.append(chance.choice(free))
        left.remove(out[-1])
    return out


def performed(replica, calls, chance, dialect):
    """In batches. A query sees what is committed, so it comes between two."""
    said, rest = {}, list(calls)
    while rest:
        replica.database.begin()
        for _ in range(chance.randint(1, 5)):
            if rest and rest[0].method != "query":
                call = rest.pop(0)
                said[call.number] = call.perform(replica, dialect)
        if chance.random() < 0.1 and not said:
            replica.database.rollback()
        else:
            replica.database.commit([b"note"], b"head" if chance.random() < 0.2 else None)
        while rest and rest[0].method == "query":
            call = rest.pop(0)
            said[call.number] = call.perform(replica, dialect)
    return said


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
@MIXES
@given(data=st.data(), seed=st.integers(0, 1 << 32))
def test_two_replicas_in_different_orders(group, dialect, data, seed):
    here, chance = group(dialect), Random(seed)
    family, (steps,) = data.draw(programs(dialect, 1, 14))
    model = here.model()
    try:
        for text in (*family.drop(), *family.make()):
            assert not model.perform("execute", (text, ()))[0].error, text
        here.begin((*family.drop(), *family.make()))
        for calls in runs(steps):
            check(here, model, calls, chance)
        state = [model.perform("query", (sql, ())) for sql in family.state()]
        for one in here.replicas:
            assert [outcomes("query", (sql,), one.call("query", sql, ()), "") for sql in family.state()] == state
    finally:
        model.close()


def runs(steps):
    """Calls between two changes of the schema: what is said of a call is said before it is performed."""
    found = [[]]
    for number, (method, values) in enumerate(steps):
        call = Call(number, method, values)
        if method == "execute" and values[0].split()[0] in ("CREATE", "DROP", "ALTER"):
            found += [[call], []]
        else:
            found[-1].append(call)
    return [calls for calls in found if calls]


def check(here, model, calls, chance):
    taken = [c for c in calls if c.judge(here.replicas[0].database)]
    orders = [taken, reordered(taken, chance)]
    said = [
        performed(one, order, Random(chance.random()), here.dialect)
        for one, order in zip(here.replicas, orders, strict=True)
    ]
    for call in taken:
        assert said[0][call.number] == said[1][call.number], (call.method, call.values)
        assert said[0][call.number] == model.perform(call.method, call.values), (call.method, call.values)
    assert not difference(here.replicas), [(c.method, c.values) for c in taken]
