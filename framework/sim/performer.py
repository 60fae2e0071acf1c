"""What the world asks for when instances are to be performed, receipts are complete, and states move."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from framework.com.events import Accepted, Collect, Decide, Deliver, Outgoing, Received, Settle, Stop, Submit
from framework.errors import BadRequest
from framework.footprint import Footprint
from framework.ids import Node, Replica

if TYPE_CHECKING:
    from framework.sim.node import SimNode

State = object  # of a replica; what it is, only its performer knows


class Performer:
    """What the world asks for when instances are to be performed and receipts complete. See sim.actors."""

    def deliver(self, node: "SimNode", effect: Deliver) -> None:
        raise NotImplementedError

    def received(self, node: "SimNode", effect: Received) -> None:
        raise NotImplementedError

    def stopped(self, node: "SimNode", effect: Stop) -> None:
        """Nobody waits for an instance any more; who does not look runs to the end."""

    def settle(self, node: "SimNode", effect: Settle) -> None:
        """A transaction is over, or a part of it has failed: keep or take back what an instance did."""
        raise BadRequest(f"{type(self).__name__} cannot take part in transactions")

    def may_travel(self, client: str, call: int, part: Outgoing) -> bool:
        """May this call of a client travel with others? Then it calls nobody."""
        return False

    def accepted(self, node: "SimNode", effect: Accepted) -> None:
        """A client's call has left; for performers whose clients move between nodes."""

    def busy(self) -> bool:
        raise NotImplementedError

    def states(self, node: Node) -> list[tuple[str, str, int]]:
        """(replica, digest, requests performed) of the replicas on this node."""
        raise NotImplementedError

    # for performers that can live with changes of the group

    def refused(self, node: "SimNode", event: Submit | Collect | Decide) -> None:
        """Too few are left who could perform this call."""
        raise BadRequest(f"{type(self).__name__} cannot live with calls that are refused")

    def lost(self, node: "SimNode") -> None:
        """The node takes no calls now: clients go elsewhere."""
        raise BadRequest(f"{type(self).__name__} cannot live with nodes that leave")

    def gone(self, node: "SimNode") -> None:
        """A life of the node is over: its instances and the states of its replicas are gone."""
        raise BadRequest(f"{type(self).__name__} cannot live with nodes that leave")

    def copy(self, replica: Replica) -> State:
        """The state of a replica now. Nothing may be running on it."""
        raise BadRequest(f"{type(self).__name__} cannot copy states")

    def hold(self, replica: Replica, running: Collection[str]) -> tuple[State, int]:
        """The state of a replica, without what these invocations have done: they are over, without an end. And how many
        requests are in it."""
        raise BadRequest(f"{type(self).__name__} cannot copy states")

    def more(self, state: State, other: State) -> list[tuple[str, Footprint]]:
        """What is in another state and not in this one."""
        raise BadRequest(f"{type(self).__name__} cannot copy states")

    def again(self, replica: Replica, state: State, more: Collection[tuple[str, Footprint]]) -> State:
        """A state, with what these invocations did on top."""
        raise BadRequest(f"{type(self).__name__} cannot copy states")

    def adopt(self, replica: Replica, state: State) -> None:
        """What ``copy`` gave becomes the state of another replica."""
        raise BadRequest(f"{type(self).__name__} cannot copy states")
