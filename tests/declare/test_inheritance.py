"""A subclass inherits methods and rows, may add to them, and can take nothing away."""

from dataclasses import dataclass

import pytest

from framework import DeclarationError, Object, conflict_matrix, method
from framework.declare import declaration


@conflict_matrix(add=("show",))
class Sum(Object):
    @method(key="cell")
    def add(self, cell: str, by: int) -> None: ...
    @method(readonly=True, key="cell")
    def show(self, cell: str) -> int: ...


def rows(cls):
    return {m: set(others) for m, others in declaration(cls).relation.rows.items()}


def test_methods_and_matrix_are_inherited():
    class Same(Sum):
        pass

    assert declaration(Same).methods == declaration(Sum).methods
    assert rows(Same) == rows(Sum) == {"add": {"show"}, "show": {"add"}}
    assert declaration(Same).cls is Same
    assert declaration(Same).name == "Same"


def test_a_new_method_that_no_row_mentions_conflicts_with_everything():
    class More(Sum):
        @method
        def clear(self) -> None: ...

    assert rows(More) == {"add": {"show", "clear"}, "show": {"add", "clear"}, "clear": {"add", "show", "clear"}}
    assert rows(Sum) == {"add": {"show"}, "show": {"add"}}


def test_an_own_matrix_adds_rows():
    @conflict_matrix(clear=("add", "show"))
    class More(Sum):
        @method
        def clear(self) -> None: ...

    assert rows(More) == {"add": {"show", "clear"}, "show": {"add", "clear"}, "clear": {"add", "show"}}


def test_a_star_of_the_base_covers_new_methods():
    @conflict_matrix(add="*", show="add")
    class Base(Sum):
        pass

    @conflict_matrix(touch=("add",))
    class More(Base):
        @method
        def touch(self) -> None: ...

    assert rows(More)["add"] == {"add", "show", "touch"}


def test_a_matrix_can_come_after_a_base_without_one():
    class Base(Object):
        @method
        def put(self) -> None: ...

    @conflict_matrix(put=())
    class Derived(Base):
        pass

    assert rows(Base) == {"put": {"put"}}
    assert rows(Derived) == {}


def test_a_row_of_the_base_cannot_be_taken_away():
    with pytest.raises(DeclarationError, match=r"show=\(\).*can only add"):

        @conflict_matrix(show=())
        class Less(Sum):
            pass


def test_two_bases():
    class Log(Object):
        @method
        def note(self, text: str) -> None: ...

    class Both(Sum, Log):
        pass

    # Nobody said how note and add go together.
    assert rows(Both)["note"] == {"note", "add", "show"}
    assert rows(Both)["add"] == {"show", "note"}


def test_an_override_must_say_what_it_does():
    with pytest.raises(DeclarationError, match=r"Loud\.add overrides Sum\.add.*write @method\(key='cell'\) above it"):

        class Loud(Sum):
            def add(self, cell: str, by: int) -> None: ...


def test_an_override_by_something_else():
    with pytest.raises(DeclarationError, match=r"Loud\.add overrides Sum\.add"):

        class Loud(Sum):
            add = None


def test_an_override_by_a_mixin_in_front():
    class Mixin:
        def add(self, cell: str, by: int) -> None: ...

    with pytest.raises(DeclarationError, match=r"Mixin\.add overrides Sum\.add.*make Mixin an Object"):

        class Loud(Mixin, Sum):
            pass


def test_an_override_has_its_own_declaration():
    class Whole(Sum):
        @method
        def add(self, cell: str, by: int) -> None: ...

    assert declaration(Whole).methods["add"].footprint(("a", 1)).keys is None
    assert declaration(Sum).methods["add"].footprint(("a", 1)).keys == (("a", "w"),)
    assert rows(Whole) == rows(Sum)


def test_readonly_cannot_be_dropped():
    with pytest.raises(DeclarationError, match=r"Loud\.show: Sum\.show is readonly.*readonly=True, key='cell'"):

        class Loud(Sum):
            @method(key="cell")
            def show(self, cell: str) -> int: ...


def test_readonly_can_be_gained_and_then_nothing_conflicts():
    class Idle(Sum):
        @method(readonly=True)
        def add(self, cell: str, by: int) -> None: ...

    assert rows(Idle) == {}


def test_method_in_a_mixin_that_is_no_object():
    class Mixin:
        @method
        def note(self) -> None: ...

    with pytest.raises(DeclarationError, match=r"Mixin\.note has @method, but Mixin is no Object.*Mixin\(Object\)"):

        class Noted(Mixin, Object):
            pass


@pytest.mark.parametrize("outer", [True, False])
def test_a_decorator_that_makes_the_class_anew(outer):
    def anew(cls):
        return type(cls.__name__, cls.__bases__, {k: v for k, v in vars(cls).items() if k != "__dict__"})

    matrix = conflict_matrix(put=())

    @dataclass
    class Row(Object):
        name: str = ""

        @method
        def put(self) -> None: ...

    cls = matrix(anew(Row)) if outer else anew(matrix(Row))
    assert declaration(cls).cls is cls
    assert rows(cls) == {}


def test_slots_would_hide_state():
    with pytest.raises(DeclarationError, match=r"Row has __slots__.*remove"):

        class Row(Object):
            __slots__ = ("name",)


def test_a_class_that_forgets_super_in_init_subclass():
    class Root(Object):
        def __init_subclass__(cls) -> None:
            pass

    class Leaf(Root):
        @method
        def put(self) -> None: ...

    assert set(declaration(Leaf).methods) == {"put"}
    assert declaration(Leaf).cls is Leaf
