"""What a class says: methods, keys, conflicts. Pure: no clock, no chance, no threads, no network.

``Object``, ``method`` and ``conflict_matrix`` are what a user types; ``declaration(cls)`` is what the rest of
the framework reads. A class goes through ``marks`` (the decorator), ``signature`` and ``codec`` (parameters
and their types), ``keyspec`` and ``keys`` (which keys a call touches) and ``matrix`` (which methods
conflict); ``build`` and ``base`` put it together in one ``model.Declaration``.
"""

from framework.declare.backed import LATER, Backed, Place, Recalled, Touched
from framework.declare.base import Object, conflict_matrix, declaration
from framework.declare.environment import Environment, performing
from framework.declare.keys import canonical
from framework.declare.marks import method
from framework.declare.model import Declaration, Method
from framework.declare.signature import Parameter

__all__ = [
    "LATER",
    "Backed",
    "Declaration",
    "Environment",
    "Method",
    "Object",
    "Parameter",
    "Place",
    "Recalled",
    "Touched",
    "canonical",
    "conflict_matrix",
    "declaration",
    "method",
    "performing",
]
