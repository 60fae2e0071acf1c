"""For the tests of your own objects: ``check_conflicts(Bank)`` asks whether a class tells the truth, and
``cluster({"bank": Bank})`` starts real nodes whose links can be cut (see docs/testing.md).

P3 §2.2: two calls are compatible iff from every state both orders give the same state and the same outputs. That is
tried on states that the object reaches by its own methods, with few and small arguments so that keys meet. Four laws:

- two calls that do not conflict by declaration cannot be told apart by their order;
- a readonly method changes nothing;
- a method that raises leaves no trace: compatible calls run side by side, so nobody could take its changes back;
- a method does the same on every replica: chance and time come from ``self.random()`` and ``self.now()``.

A broken law is an AssertionError with the smallest example. A conflict that no example needed is a hint in the report:
it costs order, not correctness, and a hint is no proof. The same class gives the same result each time.

``generate`` makes arguments and states, ``perform`` runs calls, ``laws`` judges one example, ``tell`` words it.

Of a cluster (``clusters``), ``plan`` is what a test asks for, ``processes`` and ``inside`` are the two kinds of nodes,
``forward`` has the links. They need gRPC and are imported when ``cluster`` is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from framework.testing.check import Pair, Report, check_conflicts

if TYPE_CHECKING:
    from framework.testing.clusters import Cluster, cluster

__all__ = ["Cluster", "Pair", "Report", "check_conflicts", "cluster"]


def __getattr__(name: str) -> Any:
    if name not in ("Cluster", "cluster"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("framework.testing.clusters"), name)
