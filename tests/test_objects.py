"""The objects do what their papers say, and declare what is true."""

import msgspec
import pytest

from examples.account import Account
from examples.own import Poll
from framework.declare import declaration
from framework.testing import check_conflicts
from objects.bank import Bank, RefusedError
from objects.counter import Counter
from objects.diary import Diary
from objects.file import File
from objects.travel import Agent, Car, Hotel, NotBookedError, NoTripError, SoldOutError, Trip

EVERY = [Counter, Bank, Car, Hotel, Agent, Diary, File, Account, Poll]


class AgentAlone(Agent):
    """The agent without those that it calls: check_conflicts performs one object alone."""

    def _reserve(self, day):
        if day == "a":
            raise NoTripError(day)
        return Trip(day, 1, 1)

    def _give_back(self, trip):
        pass


@pytest.mark.rotating(3)
@pytest.mark.parametrize("cls", [AgentAlone if cls is Agent else cls for cls in EVERY])
def test_the_declaration_is_true_and_tight(cls):
    assert check_conflicts(cls, without=("inquire",) if cls is AgentAlone else ()).hints == ()


@pytest.mark.parametrize("cls", EVERY)
def test_the_state_can_be_sent(cls):
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(vars(cls()))) == vars(cls())


def conflict(cls, one, other):
    methods, relation = declaration(cls).methods, declaration(cls).relation
    f, g = (methods[name].footprint(methods[name].bind(*values)) for name, *values in (one, other))
    return relation.conflict(f, g)


def test_the_counter_of_p3():
    counter = Counter()
    counter.increment()
    counter.increment(4)
    counter.decrement(2)
    assert counter.show() == 3
    rows = declaration(Counter).relation
    assert rows.methods("increment", "show")
    assert rows.methods("decrement", "show")
    for pair in [("increment", "decrement"), ("increment", "increment"), ("decrement", "decrement"), ("show", "show")]:
        assert not rows.methods(*pair)


def test_bank():
    bank = Bank()
    bank.deposit("ann", 5)
    bank.transfer("ann", "bob", 2)
    bank.withdraw("ann", 1)
    assert bank.balance("ann") == 2
    assert bank.balance("nobody") == 0
    assert bank.audit() == {"ann": 2, "bob": 2}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.withdraw("ann", 6), "ann has 5, not 6"),
        (lambda b: b.transfer("ann", "bob", 6), "ann has 5, not 6"),
        (lambda b: b.transfer("bob", "ann", 1), "bob has 0, not 1"),
        (lambda b: b.deposit("ann", 0), "more than 0"),
        (lambda b: b.withdraw("ann", -1), "more than 0"),
        (lambda b: b.transfer("ann", "bob", -1), "more than 0"),
    ],
)
def test_what_a_bank_refuses_leaves_no_trace(call, words):
    bank = Bank()
    bank.deposit("ann", 5)
    with pytest.raises(RefusedError, match=words):
        call(bank)
    assert vars(bank) == {"accounts": {"ann": 5}}


def test_conflicts_of_the_bank():
    assert not conflict(Bank, ("deposit", "ann", 1), ("deposit", "ann", 2))
    assert conflict(Bank, ("deposit", "ann", 1), ("withdraw", "ann", 2))
    assert not conflict(Bank, ("deposit", "ann", 1), ("withdraw", "bob", 2))
    assert conflict(Bank, ("transfer", "ann", "bob", 1), ("balance", "bob"))
    assert not conflict(Bank, ("transfer", "ann", "bob", 1), ("transfer", "cat", "dan", 1))
    assert conflict(Bank, ("transfer", "ann", "bob", 1), ("audit",))
    assert not conflict(Bank, ("balance", "ann"), ("audit",))


def test_car():
    car = Car()
    assert [car.book("fri"), car.book("fri"), car.book("sat")] == [1, 2, 1]
    assert car.free("fri") == 0
    with pytest.raises(SoldOutError, match="fri"):
        car.book("fri")
    car.cancel("fri", 1)
    assert car.book("fri") == 1
    with pytest.raises(NotBookedError, match="1 is not booked on sun"):
        car.cancel("sun", 1)
    assert conflict(Car, ("book", "fri"), ("book", "fri"))
    assert not conflict(Car, ("book", "fri"), ("book", "sat"))


def test_a_stay_is_booked_for_all_its_days_or_none():
    hotel = Hotel(places=1)
    assert hotel.stay(["fri", "sat", "fri"]) == [1, 1]
    with pytest.raises(SoldOutError, match="sat"):
        hotel.stay(["sun", "sat"])
    assert hotel.plan() == {"fri": [1], "sat": [1]}
    hotel.cancel("fri", 1)
    assert vars(hotel) == {"places": 1, "booked": {"sat": [1]}}
    assert conflict(Hotel, ("stay", ["fri", "sat"]), ("book", "sat"))
    assert not conflict(Hotel, ("stay", ["fri", "sat"]), ("book", "sun"))
    assert conflict(Hotel, ("book", "fri"), ("plan",))


def test_an_agent_keeps_one_trip_for_a_customer_and_day():
    agent = AgentAlone()
    assert agent.book("ann", "fri") == Trip("fri", 1, 1)
    with pytest.raises(NoTripError, match="ann has a trip on fri already"):
        agent.book("ann", "fri")
    agent.book("ann", "di")
    assert [trip.day for trip in agent.trips("ann")] == ["di", "fri"]
    agent.cancel("ann", "fri")
    agent.cancel("ann", "di")
    assert vars(agent) == {"booked": {}}
    with pytest.raises(NotBookedError, match="ann has no trip on fri"):
        agent.cancel("ann", "fri")


def test_agents_conflict_where_it_is_the_same_customer():
    assert conflict(Agent, ("book", "ann", "fri"), ("book", "ann", "sat"))
    assert conflict(Agent, ("book", "ann", "fri"), ("trips", "ann"))
    assert not conflict(Agent, ("book", "ann", "fri"), ("book", "bob", "fri"))
    assert not conflict(Agent, ("book", "ann", "fri"), ("inquire", "fri", ["hotel"]))


def test_the_file_of_p1():
    file = File()
    file.write(2, b"two")
    assert (file.read(2), file.read(0), file.length()) == (b"two", b"", 3)
    assert file.append(b"three") == 3
    file.truncate(3)
    assert file.length() == 3
    with pytest.raises(ValueError, match="no block -1"):
        file.write(-1, b"")
    assert conflict(File, ("write", 1, b""), ("write", 1, b""))
    assert conflict(File, ("write", 1, b""), ("read", 1))
    assert not conflict(File, ("write", 1, b""), ("read", 2))
    assert not conflict(File, ("read", 1), ("read", 1))
    assert conflict(File, ("append", b""), ("read", 1))
