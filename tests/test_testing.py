"""check_conflicts finds what is wrong, shrinks it, and is quiet about what is right."""

import asyncio
import random
import sys

import pytest
from hypothesis import strategies as st

from framework import BadRequest, NoSuchMethod, Object, conflict_matrix, method
from framework.testing import check_conflicts
from objects.bank import Bank


def failure(cls, **options):
    with pytest.raises(AssertionError) as caught:
        check_conflicts(cls, **options)
    return str(caught.value)


def with_matrix(cls, **rows):
    """The same class with another matrix."""
    body = {k: v for k, v in vars(cls).items() if not k.startswith("_obo")}
    return conflict_matrix(**rows)(type(cls.__name__, (Object,), body))


def test_the_papers_bank_is_not_true_where_money_can_be_refused():
    # P0 §2 calls deposit and withdraw compatible.
    said = failure(
        with_matrix(
            Bank, deposit=("balance", "audit"), withdraw=("withdraw", "balance", "audit"), transfer="*"
        )
    )  # fmt: skip
    assert said == "\n".join(
        [
            "what Bank declares does not hold",
            "",
            "Bank.deposit and Bank.withdraw, compatible by declaration, can be told apart by their order:",
            "  state     Bank()",
            "  A         deposit('a', 1)",
            "  B         withdraw('a', 1)",
            "  A then B  A returns None; B returns None; state {'accounts': {'a': 0}}",
            "  B then A  A returns None; B raises RefusedError: a has 0, not 1; state {'accounts': {'a': 1}}",
            "  remedy    in @conflict_matrix write deposit=('balance', 'audit', 'withdraw')",
        ]
    )


def test_an_example_that_needs_a_state_has_the_shortest_way_to_it():
    said = failure(
        with_matrix(
            Bank,
            deposit=("withdraw", "balance", "audit"),
            withdraw=("balance", "audit"),
            transfer="*",
        )
    )
    assert "Bank.withdraw and Bank.withdraw, compatible" in said
    assert "  state     Bank(); deposit('a', 1)\n" in said
    assert "withdraw=('balance', 'audit', 'withdraw')" in said


def test_all_missing_pairs_are_told_at_once():
    said = failure(with_matrix(Bank, deposit=(), withdraw=(), transfer=(), balance=(), audit=()))
    assert said.count("remedy") >= 10
    assert "write audit=('deposit',)" in said


def test_the_same_result_each_time():
    cls = with_matrix(Bank, deposit=(), withdraw=(), transfer=(), balance=(), audit=())
    assert failure(cls) == failure(cls)


def test_keys_that_leave_something_out():
    class Shelf(Object):
        def __init__(self) -> None:
            self.boxes: dict[str, int] = {}

        @method(key="source")
        def move(self, source: str, target: str) -> None:
            self.boxes[target] = self.boxes.pop(source, 0) + 1

    said = failure(Shelf)
    assert "Shelf.move and Shelf.move, whose keys do not meet" in said
    assert "name in key= all that a call touches" in said
    assert "move(a:w)" in said


def test_a_readonly_method_that_writes():
    class Sneaky(Object):
        def __init__(self) -> None:
            self.seen = 0

        @method(readonly=True)
        def look(self) -> int:
            self.seen += 1
            return 0

    said = failure(Sneaky)
    assert "Sneaky.look is readonly, but changes the state" in said
    assert "remove readonly=True from look" in said


def test_a_method_that_raises_half_way():
    class Half(Object):
        def __init__(self) -> None:
            self.value = 0

        @method
        def add(self, by: int) -> None:
            self.value += by
            if by > 3:
                raise ValueError("too much")

    said = failure(Half)
    assert "Half.add raises, but leaves a trace" in said
    assert "call      add(5)" in said
    assert "raises ValueError: too much" in said
    assert "check first" in said


def test_chance():
    class Dice(Object):
        @method
        def throw(self) -> float:
            return random.random()

    class FairDice(Object):
        @method
        def throw(self) -> tuple[float, float, str]:
            return self.random(), self.now(), str(self.uuid())

    assert "Dice.throw does not do the same twice" in failure(Dice)
    assert check_conflicts(FairDice).needless == (("throw", "throw"),)


def test_a_state_that_cannot_be_sent():
    class Odd(Object):
        def __init__(self) -> None:
            self.thing: object = None

        @method
        def put(self) -> None:
            self.thing = object()

        @method
        def other(self) -> None: ...

    said = failure(Odd)
    assert "Odd.put leaves a state that cannot be sent" in said
    assert "self.thing" in said
    assert "Odd.other" not in said


def test_sums_of_floats_depend_on_the_order():
    @conflict_matrix(add=())
    class Sum(Object):
        def __init__(self) -> None:
            self.value = 0.0

        @method
        def add(self, by: float) -> None:
            self.value += by

    assert "Sum.add and Sum.add, compatible" in failure(Sum)


def test_a_result_that_tells_the_order():
    @conflict_matrix(add=())
    class Tally(Object):
        def __init__(self) -> None:
            self.value = 0

        @method
        def add(self) -> int:
            self.value += 1
            return self.value

    said = failure(Tally)
    assert "A then B  A returns 1; B returns 2" in said
    assert "B then A  A returns 2; B returns 1" in said


def test_a_result_that_is_part_of_the_object_is_seen_as_it_was():
    @conflict_matrix(put="everything")
    class Bag(Object):
        def __init__(self) -> None:
            self.things: dict[str, int] = {}

        @method(key="name")
        def put(self, name: str) -> None:
            self.things[name] = 1

        @method(readonly=True)
        def everything(self) -> dict[str, int]:
            return self.things  # and not a copy

    assert check_conflicts(Bag).needless == ()


def test_a_needless_conflict_is_a_hint():
    class Register(Object):  # no matrix: everything conflicts
        def __init__(self) -> None:
            self.value = 0

        @method
        def add(self, by: int) -> None:
            self.value += by

        @method(readonly=True)
        def show(self) -> int:
            return self.value

    report = check_conflicts(Register)
    assert report.needless == (("add", "add"),)
    assert report.hints[0].startswith("Register.add and Register.add are declared to conflict, but none of 100")
    assert str(report).splitlines()[0] == "Register: no conflict is missing (3 pairs of methods, 300 examples)"
    assert "hint: Register.add" in str(report)


def test_keys_that_never_meet_say_nothing():
    class Wide(Object):
        def __init__(self) -> None:
            self.cells: dict[int, int] = {}

        @method(key="cell")
        def put(self, cell: int) -> None:
            self.cells[cell] = 1

        @method(key="other", readonly=True)
        def get(self, other: int) -> int:
            return self.cells.get(other, 0)

    report = check_conflicts(Wide, strategies={"cell": st.integers(10, 20), "get.other": st.integers(30, 40)})
    assert any("in no example did their keys meet" in hint for hint in report.hints)


def test_async_methods():
    class Slow(Object):
        def __init__(self, start: int) -> None:
            self.value = start

        @method
        async def double(self) -> None:
            await asyncio.sleep(0)
            self.value *= 2

        @method
        async def add(self) -> float:
            self.value += 1
            return self.random()

    assert check_conflicts(Slow, examples=30).needless == (("add", "add"), ("double", "double"))
    assert "Slow(start=1)" in failure(with_matrix(Slow, add=(), double=()))

    async def inside():
        check_conflicts(Slow)

    with pytest.raises(BadRequest, match="from a plain def"):
        asyncio.run(inside())


def test_user_strategies():
    class Picky(Object):
        def __init__(self, size: int = 3) -> None:
            self.size = size

        @method
        def grow(self, by: int) -> None:
            assert by in (7, 8)
            self.size = by

    seen = failure(with_matrix(Picky, grow=()), strategies={"by": st.sampled_from([7, 8]), "__init__.size": st.just(9)})
    assert "Picky(size=9)" in seen
    assert "grow(7)" in seen
    with pytest.raises(BadRequest, match="'bye' is no parameter of Picky; did you mean 'by'"):
        check_conflicts(Picky, strategies={"bye": st.just(1)})


def test_values_that_cannot_be_made():
    class Strict(Object):
        @method
        def go(self, by: int) -> None: ...

    with pytest.raises(BadRequest, match=r"no arguments for Strict.*strategies="):
        check_conflicts(Strict, strategies={"by": st.just("no int")})


def test_methods_that_need_other_objects_are_out_of_scope():
    class Agency(Object):
        def __init__(self) -> None:
            self.trips = 0

        @method
        def trip(self) -> None:
            try:
                self.orb.object("car").book("fri")
            except Exception:
                self.trips += 1

        @method
        def idle(self) -> None: ...

    with pytest.raises(BadRequest, match=r"Agency\.trip uses self\.orb.*without=\('trip',\)"):
        check_conflicts(Agency)
    assert {p.first for p in check_conflicts(Agency, without=["trip"]).pairs} == {"idle"}
    with pytest.raises(NoSuchMethod, match="did you mean 'trip'"):
        check_conflicts(Agency, without=["tripp"])


def test_without_hypothesis(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(BadRequest, match="pip install hypothesis"):
        check_conflicts(Bank)
