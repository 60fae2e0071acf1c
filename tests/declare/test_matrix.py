"""What rows mean (P3 §2.2; docs/declare.md), and every mistake in them."""

import pytest

from framework import DeclarationError, Object, conflict_matrix, method
from framework.declare import declaration


class Plain(Object):
    @method
    def put(self) -> None: ...
    @method
    def cut(self) -> None: ...
    @method(readonly=True)
    def look(self) -> int:
        return 0

    @method(readonly=True)
    def size(self) -> int:
        return 0

    def helper(self) -> None: ...


def made(**rows):
    """Plain with a matrix of its own, as if it had been written so."""
    return conflict_matrix(**rows)(type("Plain", (Object,), dict(vars(Plain))))


def pairs(cls):
    rows = declaration(cls).relation.rows
    return {tuple(sorted((a, b))) for a, others in rows.items() for b in others}


ALL = {
    ("cut", "cut"),
    ("cut", "look"),
    ("cut", "put"),
    ("cut", "size"),
    ("look", "put"),
    ("put", "put"),
    ("put", "size"),
}


def test_without_matrix_everything_conflicts_but_readonly_pairs():
    assert pairs(Plain) == ALL


def test_only_stated_pairs_conflict_and_both_ways():
    cls = made(put=("look",), cut="size")
    assert pairs(cls) == {("look", "put"), ("cut", "size")}
    relation = declaration(cls).relation
    assert relation.methods("look", "put")
    assert relation.methods("put", "look")
    assert not relation.methods("put", "put")


def test_a_pair_may_be_stated_in_both_rows():
    assert pairs(made(put=("look",), look=("put",), cut=(), size=())) == {("look", "put")}


def test_a_star_is_every_method_and_itself():
    assert pairs(made(put="*", cut="put", look="put", size="put")) == {p for p in ALL if "put" in p}


def test_a_star_of_a_readonly_method_leaves_out_readonly_ones():
    assert pairs(made(look="*", put=("look",), cut=("look",), size=())) == {("cut", "look"), ("look", "put")}


def test_a_forgotten_method_conflicts_with_everything():
    # 'size' and 'cut' are in no row: their author may have forgotten them.
    assert pairs(made(put=("look",))) == (ALL - {("put", "put")})


def test_a_star_mentions_only_its_own_row():
    # 'put' is covered by the star but mentioned by nobody: it conflicts with itself, too.
    assert ("put", "put") in pairs(made(cut="*"))


def test_an_empty_row_is_compatible_with_all_that_was_thought_of():
    assert pairs(made(put=(), cut=("look",), size=())) == {("cut", "look")}


def test_the_example_of_the_architecture():
    @conflict_matrix(
        deposit=("balance", "audit"),
        withdraw=("withdraw", "balance", "audit"),
        transfer="*",
    )
    class Bank(Object):
        @method(key="account")
        def deposit(self, account: str, amount: int) -> None: ...
        @method(key="account")
        def withdraw(self, account: str, amount: int) -> None: ...
        @method(key=("source", "target"))
        def transfer(self, source: str, target: str, amount: int) -> None: ...
        @method(key="account", readonly=True)
        def balance(self, account: str) -> int: ...
        @method(readonly=True)
        def audit(self) -> int: ...

    d = declaration(Bank)
    assert not d.relation.methods("deposit", "deposit")
    assert not d.relation.methods("deposit", "withdraw")
    assert d.relation.rows["transfer"] == frozenset(d.methods)

    def call(name, *values):
        return d.methods[name].footprint(values)

    def conflict(f, g):
        return d.relation.conflict(f, g)

    assert conflict(call("withdraw", "ann", 1), call("withdraw", "ann", 2))
    assert not conflict(call("withdraw", "ann", 1), call("withdraw", "bob", 1))
    assert conflict(call("withdraw", "ann", 1), call("transfer", "bob", "ann", 1))
    assert conflict(call("withdraw", "ann", 1), call("audit"))
    assert not conflict(call("balance", "ann"), call("audit"))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({}, ["Plain", "empty", "leave the matrix out"]),
        ({"putt": ("look",)}, ["Plain", "'putt'", "did you mean 'put'"]),
        ({"put": ("lock",)}, ["Plain", "'put'", "'lock'", "did you mean 'look'"]),
        ({"put": "lock"}, ["did you mean 'look'"]),
        ({"put": ("zzz",)}, ["known: cut, look, put, size"]),
        ({"put": ("helper",)}, ["'helper'", "write @method"]),
        ({"put": ["look"]}, ["'put'", "tuple", 'put=("one", "other")']),
        ({"put": {"look"}}, ["tuple"]),
        ({"put": None}, ["tuple"]),
        ({"put": 3}, ["tuple"]),
        ({"put": (Plain.look,)}, ["tuple of method names"]),
        ({"put": ("*", "look")}, ['put="*" alone']),
        ({"put": ("look", "look")}, ["'look' twice"]),
        ({"look": ("size",)}, ["'look' with 'size'", "readonly"]),
        ({"look": ("look",)}, ["'look' with itself", "readonly"]),
        ({"put": (), "cut": ("put",)}, ["put=()", "row 'cut'", 'put=("cut",)']),
        ({"put": (), "cut": "*"}, ["put=()", "row 'cut'", 'put=("cut",)']),
    ],
)
def test_mistakes_in_rows(rows, words):
    with pytest.raises(DeclarationError) as caught:
        made(**rows)
    for word in words:
        assert word in str(caught.value)


def test_an_empty_readonly_row_beside_a_readonly_star_is_no_contradiction():
    assert pairs(made(look="*", size=(), put=("look",), cut=("look",))) == {("cut", "look"), ("look", "put")}


def test_matrix_on_what_is_no_object():
    with pytest.raises(DeclarationError, match=r"Loose is no Object.*class Loose\(Object\)"):

        @conflict_matrix(put="*")
        class Loose:
            pass


def test_matrix_on_a_function():
    with pytest.raises(DeclarationError, match="above a class"):
        conflict_matrix(put="*")(lambda: None)


def test_matrix_without_parentheses():
    with pytest.raises(DeclarationError, match="rows by name"):
        conflict_matrix(Plain)


def test_two_matrices():
    with pytest.raises(DeclarationError, match="Plain has two conflict matrices"):
        conflict_matrix(put="*")(made(put="*"))


def test_a_matrix_that_comes_too_late():
    class Early(Object):
        @method
        def put(self) -> None: ...

    class Derived(Early):
        pass

    with pytest.raises(DeclarationError, match="Early gets its conflict matrix after Derived"):
        conflict_matrix(put="*")(Early)
    assert Derived


def test_a_failed_matrix_leaves_the_class_as_it_was():
    cls = type("Plain", (Object,), dict(vars(Plain)))
    before = declaration(cls)
    with pytest.raises(DeclarationError):
        conflict_matrix(nothing="*")(cls)
    assert declaration(cls) is before
    assert pairs(conflict_matrix(put=(), cut=(), look=(), size=())(cls)) == set()
