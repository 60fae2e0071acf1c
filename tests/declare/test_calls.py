"""Binding, packing and unpacking the arguments and results of a call."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
import pytest

from framework import BadRequest, NoSuchMethod, Object, RemoteError, method
from framework.declare import declaration, performing
from framework.errors import BadMessage
from framework.footprint import Footprint


@dataclass
class Address:
    street: str
    number: int


class Post(Object):
    def __init__(self) -> None:
        self.sent: list[str] = []

    @method
    def send(self, text: str, to: Address, stamps: tuple[int, ...] = (), note: str | None = None) -> int:
        self.sent.append(text)
        return len(self.sent)

    @method(readonly=True)
    async def look(self) -> None: ...
    @method
    def tags(self, tags: set[str]) -> set[str]:
        return tags

    @method
    def anything(self, what: Any) -> dict[int, float]:
        return {1: 1.0}

    def helper(self) -> None: ...

    @method
    def luck(self) -> tuple[float, float, UUID]:
        return self.now(), self.random(), self.uuid()


D = declaration(Post)
SEND = D.methods["send"]
HERE = Address("Elm", 3)


def test_what_a_method_knows():
    assert list(D.methods) == ["anything", "look", "luck", "send", "tags"]
    assert (SEND.name, SEND.where, SEND.readonly, SEND.is_async) == ("send", "Post.send", False, False)
    assert SEND.returns_value
    assert SEND.takes_input
    look = D.methods["look"]
    assert (look.readonly, look.is_async, look.returns_value, look.takes_input) == (True, True, False, False)
    assert [p.name for p in SEND.parameters] == ["text", "to", "stamps", "note"]
    assert [p.required for p in SEND.parameters] == [True, True, False, False]
    assert D.footprint("look", ()) == Footprint("look", None, True)


def test_a_decorated_function_is_the_function():
    post = Post()
    assert post.send("hi", HERE) == 1
    assert asyncio.run(post.look()) is None


def test_bind():
    expected = ("hi", HERE, (), None)
    assert SEND.bind("hi", HERE) == expected
    assert SEND.bind("hi", to=HERE) == expected
    assert SEND.bind(to=HERE, text="hi") == expected
    assert SEND.bind("hi", HERE, note="x") == ("hi", HERE, (), "x")
    assert SEND.bind("hi", HERE, (1,), None) == ("hi", HERE, (1,), None)
    assert D.methods["look"].bind() == ()


def test_bound_values_are_those_of_the_call_not_of_the_caller():
    mine = ["a"]
    (theirs,) = D.methods["anything"].bind(mine)
    mine.append("b")
    assert theirs == ["a"]


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        (("hi",), {}, ["'to' is missing", "text: str, to: Address"]),
        ((), {}, ["'text' is missing"]),
        (("hi", HERE, (), None, 5), {}, ["takes 4 arguments, 5 were given"]),
        (("hi", HERE), {"text": "ho"}, ["'text' is given twice"]),
        (("hi", HERE), {"notes": "x"}, ["no argument 'notes'", "did you mean 'note'"]),
        (("hi", HERE), {"self": "x"}, ["no argument 'self'"]),
        ((5, HERE), {}, ["argument text=5", "Expected 'str', got 'int'"]),
        (("hi", Address("Elm", "3")), {}, ["argument to=", "Expected 'int', got 'str'"]),
        (("hi", HERE, (1, "2")), {}, ["argument stamps=(1, '2')"]),
        (("hi", HERE, (2**70,)), {}, ["argument stamps="]),
        (("hi\ud800", HERE), {}, ["argument text="]),
        (("hi", object()), {}, ["argument to="]),
    ],
)
def test_wrong_arguments(args, kwargs, words):
    with pytest.raises(BadRequest) as caught:
        SEND.bind(*args, **kwargs)
    for word in ["Post.send", *words]:
        assert word in str(caught.value)


def test_a_method_without_arguments_takes_none():
    with pytest.raises(BadRequest, match=r"Post\.look takes 0 arguments, 1 were given$"):
        D.methods["look"].bind(1)


def test_pack_and_unpack():
    for values in [SEND.bind("hi", HERE), SEND.bind("hi", HERE, (1, 2), "x")]:
        assert SEND.unpack(SEND.pack(values)) == values
    look = D.methods["look"]
    assert look.unpack(look.pack(())) == ()


def test_pack_names_what_cannot_be_written():
    with pytest.raises(BadRequest, match=r"Post\.anything: argument what="):
        D.methods["anything"].pack((object(),))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the arguments are wrong"),
        (b"\xc1garbage", "the arguments are wrong"),
        (msgspec.msgpack.encode({"text": "hi"}), "the arguments are wrong"),
        (msgspec.msgpack.encode(["hi"]), "the arguments are wrong: Expected 'array' of length 4, got 1"),
        (msgspec.msgpack.encode([1, {}, [], None]), "argument text: Expected 'str', got 'int'"),
        (msgspec.msgpack.encode(["hi", {"street": "Elm"}, [], None]), "argument to: "),
        (msgspec.msgpack.encode(["hi", {"street": "Elm", "number": 3}, ["x"], None]), "argument stamps: "),
    ],
)
def test_what_arrives_is_checked(data, words):
    with pytest.raises(BadRequest) as caught:
        SEND.unpack(data)
    assert f"Post.send: {words}" in str(caught.value)


def test_results():
    assert SEND.unpack_result(SEND.pack_result(3)) == 3
    assert D.methods["look"].unpack_result(D.methods["look"].pack_result(None)) is None
    anything = D.methods["anything"]
    assert anything.unpack_result(anything.pack_result({1: 2.0})) == {1: 2.0}


def test_a_wrong_result_is_the_methods_fault_and_a_wrong_answer_the_peers():
    with pytest.raises(RemoteError, match=r"Post\.send returned 'x'.*Expected 'int', got 'str'"):
        SEND.pack_result("x")
    with pytest.raises(RemoteError, match=r"Post\.look returned 1"):
        D.methods["look"].pack_result(1)
    with pytest.raises(BadMessage, match=r"Post\.send: the result"):
        SEND.unpack_result(msgspec.msgpack.encode("x"))


def test_sets_are_written_in_one_order():
    # The bytes go into the trace, and one seed must give one trace (protocol.md §13, A11), whatever PYTHONHASHSEED is.
    program = (
        "from tests.declare.test_calls import D; import sys\n"
        "sys.stdout.write(D.methods['tags'].pack(({'a', 'b', 'c', 'd', 'e'},)).hex())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": str(seed)}, check=True, capture_output=True
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(runs) == 1


def test_no_such_method():
    assert D.method("send") is SEND
    with pytest.raises(NoSuchMethod, match=r"Post has no method 'sent'; did you mean 'send'\?"):
        D.method("sent")
    with pytest.raises(NoSuchMethod, match=r"Post\.helper .*not decorated with @method"):
        D.method("helper")
    with pytest.raises(NoSuchMethod, match="no method '__init__'"):
        D.method("__init__")


class Fixed:
    orb = "the orb"

    def now(self) -> float:
        return 1.5

    def random(self) -> float:
        return 0.5

    def uuid(self) -> UUID:
        return UUID(int=7)


def test_what_a_method_is_given_while_it_is_performed():
    post = Post()
    with performing(Fixed()):
        assert post.luck() == (1.5, 0.5, UUID(int=7))
        assert post.orb == "the orb"
    assert vars(post) == {"sent": []}  # the state is only what the class put there


def test_outside_of_a_performance():
    with pytest.raises(BadRequest, match=r"self\.now\(\) is there only while a method is performed"):
        Post().luck()
    with pytest.raises(BadRequest, match=r"self\.orb is there only"):
        _ = Post().orb


def test_each_instance_has_its_own_environment():
    class Other(Fixed):
        def random(self) -> float:
            return 0.25

    async def call(environment):
        with performing(environment):
            await asyncio.sleep(0)
            return await asyncio.to_thread(post.random)

    async def both():
        return await asyncio.gather(call(Fixed()), call(Other()))

    post = Post()
    assert asyncio.run(both()) == [0.5, 0.25]
