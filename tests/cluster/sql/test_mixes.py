"""Random statements at three replicas, against one plain database: same answers, same state in the end."""

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.cluster.sql.mixes import programs
from tests.cluster.sql.model import outcomes
from tests.tiers import examples

MIXES = settings(
    max_examples=examples(6, 100),
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # what goes wrong between threads does not go wrong again by itself
)


@MIXES
@given(st.data())
def test_one_client_gets_what_a_plain_database_gives(group, data):
    family, (steps,) = data.draw(programs(group.dialect, 1, 12))
    model = group.model(family)
    try:
        mixed = group.mix(family, lambda: [group.clients[1].run(steps)])
        for number, told in enumerate(mixed.told[0]):
            assert told.said == model.perform(told.method, told.values), (number, told)
        assert mixed.state == final(model, family)
    finally:
        model.close()


@MIXES
@given(st.data(), st.booleans())
def test_many_clients_get_what_one_order_of_a_plain_database_gives(group, data, eager):
    """``eager``: calls are sent without waiting. What a change of the schema has overtaken is sent again, behind later
    calls: such a mix changes no schema."""
    family, each = data.draw(programs(group.dialect, 3, 5, ddl=not eager))
    mixed = group.mix(family, lambda: group.at_once(each, eager))
    for place, order in enumerate(mixed.orders):
        model = group.model(family)
        try:
            check_order(model, mixed, order, place, [c.name for c in group.clients])
            assert mixed.state == final(model, family)
        finally:
            model.close()


def final(model, family):
    return [model.perform("query", (sql, ())) for sql in family.state()]


def check_order(model, mixed, order, place, clients):
    """The order of one replica explains what all clients were told, and what the one whose home it is has read."""
    reads = reads_of(mixed.told[place])
    mine = settle(model, reads, 0)
    answered = {name: [] for name in clients}
    for one in order:
        said = outcomes(one.method, one.values, one.value, one.error)
        assert said == model.perform(one.method, one.values), one
        answered[one.client].append((one.method, said))
        mine = settle(model, reads, mine + (one.client == clients[place]))
    assert not reads, f"no moment of replica {place} explains {reads[0]}"
    for name, told in zip(clients, mixed.told, strict=True):
        assert answered[name] == [(t.method, t.said) for t in told if t.performed]


def reads_of(told):
    """What a client has read, each with the number of calls of its own that it must have seen."""
    found, before = [], 0
    for one in told:
        if one.method == "query":
            found.append((before, one))
        before += one.performed
    return found


def settle(model, reads, mine):
    """A read saw the replica between two calls: what its client has written, what it saw before, nothing half done."""
    while reads and reads[0][0] <= mine and model.perform("query", reads[0][1].values) == reads[0][1].said:
        reads.pop(0)
    return mine
