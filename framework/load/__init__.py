"""``obo load``: drives a cluster with a workload and writes down what clients and nodes saw (docs/load.md).

A workload of your own is a function that says what the next call is::

    from framework.load import Call, Draw

    def mine(draw: Draw) -> Call:
        return Call("bank", "deposit", (draw.key(), 5))
"""

from framework.load.draw import Call, Draw

__all__ = ["Call", "Draw"]
