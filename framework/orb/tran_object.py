"""In a module of its own: what is known here may stand in its state, and is looked through for that."""

from framework.declare import Object


class Tran(Object):
    """The object whose instances are transactions: what it knows is in the com layer (framework/com/tran.py)."""
