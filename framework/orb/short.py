"""Methods so short that to wake a thread for them takes longer than they do: the loop performs them itself.

The loop must not wait, and not be kept busy. So a method is short only if its source says that it can do neither: no
loop, no import, no ``with``, no ``self.orb``; it calls nothing but what is known to be short (a few builtins, methods
of containers and texts), and functions and methods of its own that are short as well. What cannot be read is long.

Then it is timed. Work that grows with the state, such as ``sum(self.accounts.values())``, may take long one day:
from then on threads perform it. What reaches ``self.orb`` all the same, through a property of something in the state
for example, is taken back and performed anew by a thread: ``Elsewhere``.
"""

import ast
import builtins
import inspect
import textwrap
from collections.abc import Iterable
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from framework.declare import Method, Object, declaration

LONG = 0.001  # seconds, on the average of the last runs
MOST_COUNTED = 2 * LONG  # one run alone proves nothing: the machine may have been busy
MUCH_TOO_LONG = 0.25  # but this does
MEMORY = 8  # runs
DEEPEST = 4  # functions that call functions
MOST_BYTES = 1 << 16  # of arguments: to read them takes time, too

_BUILTINS = frozenset(
    f.__name__
    for f in (
        *(abs, all, any, chr, divmod, hash, isinstance, len, max, min, ord, repr, round, sorted, sum),
        *(bool, bytes, dict, float, frozenset, int, list, set, str, tuple),
    )
)
_METHODS = frozenset(
    {name for kind in (dict, list, set, tuple, str, bytes, int, float) for name in vars(kind) if name[0] != "_"}
    | {"appendleft", "popleft", "extendleft", "rotate", "move_to_end"}
)
_GIVEN = (Object.now, Object.random, Object.uuid)
_NEVER = (
    *(ast.While, ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.With, ast.AsyncWith, ast.Await, ast.Yield, ast.YieldFrom, ast.Import, ast.ImportFrom),
    *(ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.FunctionDef, ast.Global, ast.Nonlocal),
)


class Elsewhere(BaseException):
    """This instance has to wait for something: a thread has to perform it, from the beginning."""


class Short:
    """A method that looked short. ``ok`` as long as it is."""

    __slots__ = ("average", "ok")

    def __init__(self, looks_short: bool) -> None:
        self.ok = looks_short
        self.average = 0.0  # seconds

    def took(self, seconds: float) -> None:
        self.average += (min(seconds, MOST_COUNTED) - self.average) / MEMORY
        if self.average > LONG or seconds > MUCH_TOO_LONG:
            self.ok = False


class Shorts(dict[tuple[type, Method], Short]):
    """What is known of the methods that were performed so far."""

    def __missing__(self, key: tuple[type, Method]) -> Short:
        cls, method = key
        found = self[key] = Short(_by_source(cls, method))
        return found


_read: WeakKeyDictionary[type, dict[str, bool]] = WeakKeyDictionary()  # what sources said


def prepare(classes: Iterable[type]) -> None:
    """Read the sources of their methods: that takes some milliseconds, which a node has before it is a member. The
    first call would stop the loop for so long, and everybody waits for the proposals of a replica."""
    for cls in classes:
        for method in declaration(cls).methods.values():
            _by_source(cls, method)


def _by_source(cls: type, method: Method) -> bool:
    known = _read.setdefault(cls, {})
    if method.name not in known:
        known[method.name] = not method.is_async and looks_short(getattr(cls, method.name, None), cls)
    return known[method.name]


def looks_short(function: Any, cls: type, depth: int = DEEPEST) -> bool:
    """Does its source say that this method of a class, or function beside it, neither waits nor goes on for long?"""
    if function in _GIVEN:
        return True
    if depth == 0 or not isinstance(function, FunctionType) or function.__closure__:
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        return False
    return isinstance(tree, ast.FunctionDef) and _Source(function, tree, cls, depth).is_short()


class _Source:
    def __init__(self, function: FunctionType, tree: ast.FunctionDef, cls: type, depth: int) -> None:
        self._globals = function.__globals__
        self._cls = cls
        self._depth = depth
        self._nodes = [n for statement in tree.body for n in ast.walk(statement)]
        self._me = tree.args.args[0].arg if tree.args.args else ""
        self._local = {a.arg for a in ast.walk(tree.args) if isinstance(a, ast.arg)}
        self._local |= {n.id for n in self._nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    def is_short(self) -> bool:
        return all(map(self._harmless, self._nodes))

    def _harmless(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return self._short_call(node.func)
        if isinstance(node, ast.Attribute):
            return node.attr != "orb" and self._short_property(node)
        return not isinstance(node, _NEVER)

    def _short_property(self, node: ast.Attribute) -> bool:
        mine = isinstance(node.value, ast.Name) and node.value.id == self._me
        found = getattr(self._cls, node.attr, None) if mine else None
        return not isinstance(found, property) or looks_short(found.fget, self._cls, self._depth - 1)

    def _short_call(self, target: ast.expr) -> bool:
        if isinstance(target, ast.Name):
            return target.id not in self._local and self._short_function(target.id)
        if not isinstance(target, ast.Attribute):
            return False
        root = target.value
        if isinstance(root, ast.Name) and root.id == self._me:
            return looks_short(getattr(self._cls, target.attr, None), self._cls, self._depth - 1)
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        known = not isinstance(root, ast.Name) or root.id in self._local  # not a queue of the module, for example
        return known and target.attr in _METHODS

    def _short_function(self, name: str) -> bool:
        if name in self._globals:
            found = self._globals[name]
            error = isinstance(found, type) and issubclass(found, BaseException)
            return error or looks_short(found, self._cls, self._depth - 1)
        found = getattr(builtins, name, None)
        return name in _BUILTINS or (isinstance(found, type) and issubclass(found, BaseException))
