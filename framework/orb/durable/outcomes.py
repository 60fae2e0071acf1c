"""What the replica of tran on this node remembers after a crash: its journal, and what its neighbours had heard of it.

A replica of an object writes down that a transaction was committed when tran of its node has heard so, and tran does,
too; in another file. Whichever of the two was on disk first, tran knows it afterwards.
"""

from framework.com.lasting import with_commits
from framework.com.view import Holding
from framework.declare import Object
from framework.ids import TRAN, Node, Replica, replica
from framework.orb.held import Held, spooled
from framework.orb.moving import capture


class Tran(Object):
    """The object whose instances are transactions: what it knows is in the com layer (framework/com/tran.py)."""


def share_commits(held: dict[Replica, Held], node: Node) -> None:
    """In a thread."""
    names = [name for one in held.values() for name in one.committed]
    if not names:
        return
    at = replica(TRAN, node)
    if at not in held:
        version = max(one.holding.version for one in held.values())
        held[at] = Held(Holding(at, version, 0), b"", "", spooled(capture(Tran())), ())
    before = held[at].part
    held[at].part = with_commits(before, names)
    held[at].on_disk = held[at].on_disk and held[at].part == before
    for one in held.values():
        one.committed = ()
