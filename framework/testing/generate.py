"""Arguments, states and pairs of calls, by hypothesis. Few and small values: keys must meet, limits must be hit."""

import inspect
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from framework.declare import Declaration, Method
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest, OboError
from framework.testing.perform import Call

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Example:
    """Make the object, perform the history: that is the state. Then the two calls, in both orders."""

    start: Mapping[str, Any]
    history: Sequence[Call]
    first: Call
    second: Call


def hypothesis() -> Any:
    """Imported late: users who do not check need not have it."""
    try:
        import hypothesis as found
        import hypothesis.strategies
    except ImportError:
        raise BadRequest("check_conflicts needs hypothesis: pip install hypothesis") from None
    return found


def smallest(examples: "SearchStrategy[T]", wrong: Callable[[T], bool], most: int, what: str) -> T | None:
    """The smallest example that is wrong, or None if none of ``most`` was."""
    h = hypothesis()
    settings = h.settings(
        max_examples=most,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(h.Phase.generate, h.Phase.shrink),
    )
    try:
        found: T = h.find(examples, wrong, settings=settings)
    except h.errors.NoSuchExample:
        return None
    except h.errors.Unsatisfiable:
        raise BadRequest(f"no arguments for {what} could be made from the annotations: pass strategies=") from None
    return found


class Generator:
    """Makes examples for the methods of one class. ``own`` are the user's strategies, by parameter."""

    def __init__(self, declared: Declaration, own: Mapping[str, Any]) -> None:
        self._st = hypothesis().strategies
        self._declared = declared
        self._own = own
        self._start = _constructor(declared.cls)
        self._check_names()

    def examples(self, a: str, b: str, history: Collection[str], longest: int) -> "SearchStrategy[Example]":
        st = self._st
        # Readonly calls lead to no new state.
        changing = [self._calls(n) for n in history if not self._declared.methods[n].readonly]
        calls = st.lists(st.one_of(changing), max_size=longest) if changing else st.just([])
        found: SearchStrategy[Example] = st.builds(Example, self._starts(), calls, self._calls(a), self._calls(b))
        return found

    def _calls(self, name: str) -> "SearchStrategy[Call]":
        method = self._declared.methods[name]
        parts = [self._parameter(name, p.name, p.type) for p in method.parameters]
        values = self._st.tuples(*parts)
        found: SearchStrategy[Call] = values.map(lambda v: _call(method, v)).filter(lambda c: c is not None)
        return found

    def _starts(self) -> "SearchStrategy[dict[str, Any]]":
        parts = {
            name: self._parameter("__init__", name, annotation)
            for name, (annotation, required) in self._start.items()
            if required or self._given("__init__", name) is not None
        }
        found: SearchStrategy[dict[str, Any]] = self._st.fixed_dictionaries(parts)
        return found

    def _given(self, method: str, parameter: str) -> Any:
        return self._own.get(f"{method}.{parameter}", self._own.get(parameter))

    def _parameter(self, method: str, parameter: str, annotation: Any) -> Any:
        given = self._given(method, parameter)
        return given if given is not None else small(self._st, annotation)

    def _check_names(self) -> None:
        known = {f"__init__.{name}" for name in self._start} | set(self._start)
        for method in self._declared.methods.values():
            known |= {p.name for p in method.parameters} | {f"{method.name}.{p.name}" for p in method.parameters}
        for name in self._own:
            if name not in known:
                raise BadRequest(
                    f"strategies: {name!r} is no parameter of {self._declared.name}; {did_you_mean(name, known)}"
                )


def _call(method: Method, values: tuple[Any, ...]) -> Call | None:
    """None for values that no caller could send: a constraint of the annotation, an odd key."""
    try:
        call = Call(method, method.bind(*values))
        method.footprint(call.values)
    except OboError:
        return None
    return call


def _constructor(cls: type) -> dict[str, tuple[Any, bool]]:
    """Parameter → (annotation, must it be given)."""
    hints = get_type_hints(inspect.getattr_static(cls, "__init__"), include_extras=True)
    declared = inspect.signature(cls).parameters.values()
    wanted = [p for p in declared if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {p.name: (hints.get(p.name, Any), p.default is p.empty) for p in wanted}


def small(st: Any, annotation: Any) -> Any:
    """Few values of a type; containers of few."""
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in _FEW:
        return st.sampled_from(_FEW[annotation])
    if origin is Annotated:
        return small(st, args[0])
    if origin in (Union, types.UnionType):
        return st.one_of([small(st, part) for part in args])
    if origin in (list, set, frozenset) and args:
        return st.lists(small(st, args[0]), max_size=3).map(origin)
    if origin is tuple and args and args[-1] is not ...:
        return st.tuples(*[small(st, part) for part in args])
    if origin is tuple and args:
        return st.lists(small(st, args[0]), max_size=3).map(tuple)
    if origin is dict and args:
        return st.dictionaries(small(st, args[0]), small(st, args[1]), max_size=3)
    return st.from_type(annotation)


#: Simplest first: that is how an example is made smaller. The floats show that their sum depends on the order.
_FEW: Mapping[Any, tuple[Any, ...]] = {
    str: ("a", "b", "c", ""),
    int: (1, 2, 3, 0, -1, 5),
    float: (1.0, 0.0, 0.1, 0.2, -1.5),
    bool: (False, True),
    bytes: (b"a", b"b", b""),
    Any: (1, "a", None, [1]),
    type(None): (None,),
}
