"""``Object`` and ``@conflict_matrix``: where a class becomes a declaration.

Two moments make one declaration. ``Object.__init_subclass__`` runs when the class body is done: methods are
read and checked, and the inherited matrix, or the safe default, gives a relation. ``@conflict_matrix`` runs
right after it and puts the relation of its rows in place. Neither depends on the other having run: the rows
are kept in the class, so a decorator that builds the class anew (``dataclass(slots=True)``) may stand above
or below.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Never, TypeVar
from uuid import UUID

from framework.declare.build import methods_of
from framework.declare.environment import current
from framework.declare.marks import mark_of
from framework.declare.matrix import Row, Rows, check_rows, relation
from framework.declare.model import Declaration, Method
from framework.declare.portable import decoded, encoded
from framework.errors import DeclarationError

_ROWS = "_obo_rows"
_DECLARATION = "_obo_declaration"


class Object:
    """Base of every object. Its ordinary attributes are its state; only ``@method`` methods can be called."""

    #: True: its state is on the disks of its nodes, too, and comes back after a crash of all of them. An answer leaves
    #: only when what it says is on disk (docs/durable.md).
    durable: ClassVar[bool] = False

    #: True: keys of its calls may be intended to be read or written (framework.footprint).
    intentions: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _declare(cls)

    @property
    def orb(self) -> Any:
        """Calls other objects."""
        return current("orb").orb

    def now(self) -> float:
        """Seconds since 1970; the same on every replica, unlike ``time.time()``."""
        return current("now()").now()

    def random(self) -> float:
        """A number in [0, 1); the same on every replica, unlike ``random.random()``."""
        return current("random()").random()

    def uuid(self) -> UUID:
        """A new identifier; the same on every replica, unlike ``uuid.uuid4()``."""
        return current("uuid()").uuid()

    def get_state(self) -> Iterable[bytes]:
        """The state for another replica, in chunks: all attributes, unless a class overrides this and ``set_state``.

        Called between two methods, never while one that changes the object is performed. What it gives is the state at
        the moment of the call, although it may be read later, in another thread, while methods are performed again.
        This one gives it complete. An override that gives it bit by bit must read from something that does not change
        meanwhile: a transaction with a snapshot, a file that is only ever replaced. In a generator, what stands before
        the first ``yield`` is done at the moment of the call, and what follows it later.
        """
        return list(encoded(self))

    def set_state(self, chunks: Iterable[bytes]) -> None:
        """Take over what ``get_state`` gave at another replica: the same chunks in the same order.

        Called on an object that was just made and is not used yet. If it raises, that object is thrown away.
        """
        state = decoded(self, chunks)
        vars(self).clear()
        vars(self).update(state)


T = TypeVar("T", bound=Object)


def conflict_matrix(*bare: Never, **rows: Row) -> Callable[[type[T]], type[T]]:
    """State which methods conflict: ``deposit=("balance", "audit"), transfer="*"``. Rules: see ``matrix``."""
    if bare:
        raise DeclarationError(
            'conflict_matrix takes rows by name: @conflict_matrix(deposit=("balance",)); leave it out if '
            "everything conflicts"
        )

    def decorate(cls: type[T]) -> type[T]:
        _check_target(cls)
        setattr(cls, _ROWS, rows)
        try:
            _declare(cls)
        except DeclarationError:
            delattr(cls, _ROWS)
            raise
        return cls

    return decorate


def declaration(cls: type) -> Declaration:
    """What a class says. Made when the class is made; the same object ever after."""
    _check_object(cls, "it has no declaration")
    found = vars(cls).get(_DECLARATION)
    return found if isinstance(found, Declaration) else _declare(cls)


def _declare(cls: type[Object]) -> Declaration:
    methods = methods_of(cls, Object, _inherited(cls))
    readonly = {m.name: m.readonly for m in methods.values()}
    above = [rows for base in reversed(cls.__mro__[1:]) if (rows := own_rows(base)) is not None]
    own = own_rows(cls)
    if own is not None:
        check_rows(cls, above, own, readonly)
    # Nobody mentioned in a matrix means nobody wrote one: then everything is assumed to conflict.
    made = Declaration(cls, cls.__name__, methods, relation(above, own, readonly, cls.intentions))
    setattr(cls, _DECLARATION, made)
    return made


def _inherited(cls: type) -> dict[str, Method]:
    out: dict[str, Method] = {}
    for base in reversed(cls.__mro__[1:]):
        if issubclass(base, Object) and base is not Object:
            own = declaration(base).methods
            out.update({name: own[name] for name, value in vars(base).items() if mark_of(value) is not None})
    return out


def own_rows(cls: type) -> Rows | None:
    """The rows that the class itself states; None without a matrix of its own."""
    found: Rows | None = vars(cls).get(_ROWS)
    return found


def _check_target(cls: object) -> None:
    if not isinstance(cls, type):
        name = getattr(cls, "__qualname__", repr(cls))
        raise DeclarationError(f"@conflict_matrix on {name}: it belongs above a class, not a function or object")
    _check_object(cls, "a conflict matrix there means nothing")
    if own_rows(cls) is not None:
        raise DeclarationError(f"{cls.__name__} has two conflict matrices: write one with all the rows")
    if cls.__subclasses__():
        raise DeclarationError(
            f"{cls.__name__} gets its conflict matrix after {cls.__subclasses__()[0].__name__} was derived "
            "from it: write @conflict_matrix directly above the class"
        )


def _check_object(cls: object, consequence: str) -> None:
    if not isinstance(cls, type) or not issubclass(cls, Object):
        name = getattr(cls, "__name__", repr(cls))
        raise DeclarationError(f"{name} is no Object, so {consequence}: write class {name}(Object)")
