"""For the tests of your own objects: ``check_conflicts(Bank)`` asks whether a class tells the truth.

P3 §2.2: two calls are compatible iff from every state both orders give the same state and the same outputs. That is
tried on states that the object reaches by its own methods, with few and small arguments so that keys meet. Four laws:

- two calls that do not conflict by declaration cannot be told apart by their order;
- a readonly method changes nothing;
- a method that raises leaves no trace: compatible calls run side by side, so nobody could take its changes back;
- a method does the same on every replica: chance and time come from ``self.random()`` and ``self.now()``.

A broken law is an AssertionError with the smallest example. A conflict that no example needed is a hint in the report:
it costs order, not correctness, and a hint is no proof. The same class gives the same result each time.

``generate`` makes arguments and states, ``perform`` runs calls, ``laws`` judges one example, ``tell`` words it.
"""

from framework.testing.check import Pair, Report, check_conflicts

__all__ = ["Pair", "Report", "check_conflicts"]
