"""The states of a node on its way through the group, and what leads from one to the next (protocol.md §10.1, P2 §5.3).

This table is the one source: docs/membership.md is checked against it, docs/membership.svg is drawn from it
(framework.sim.state_picture), and a test drives a node through each of its rows. The paper has two states, normal and
updating; it assumes that every fault is noticed in time, so nobody is isolated, and nobody is out without knowing it.
"""

from typing import Final, Literal, NamedTuple

State = Literal["outsider", "steady", "changing", "isolated", "out"]

OUTSIDER: Final[State] = "outsider"
STEADY: Final[State] = "steady"
CHANGING: Final[State] = "changing"
ISOLATED: Final[State] = "isolated"
OUT: Final[State] = "out"

MEANING: Final[dict[State, str]] = {
    OUTSIDER: "not a member; says Hello to every node of the configuration",
    STEADY: "a member; nothing about the next view is under way here",
    CHANGING: "a member that takes part in deciding the next view; requests go on",
    ISOLATED: "a member that hears too few others to decide anything; ordered calls are refused",
    OUT: "this life is over; nothing of it is used any more",
}


class Transition(NamedTuple):
    state: State
    event: str
    next: State
    what: str  # happens


TABLE: Final[tuple[Transition, ...]] = (
    Transition(OUTSIDER, "all nodes are outsiders and have heard each other", STEADY, "they begin a view together"),
    Transition(
        OUTSIDER, "a view with it was decided", STEADY, "a life begins, empty; its replicas ask for their state"
    ),
    Transition(
        STEADY,
        "a member is suspected or shall go, or a node asks to join",
        CHANGING,
        "an attempt: Prepare to who stays",
    ),
    Transition(STEADY, "Prepare", CHANGING, "it promises, reports, and uses nothing more of those who leave"),
    Transition(STEADY, "too few are heard", ISOLATED, "the driver is told, and refuses ordered calls"),
    Transition(STEADY, "it is told of a later view without it", OUT, "its life is over"),
    Transition(CHANGING, "the attempt comes to nothing", CHANGING, "another one, with a higher ballot"),
    Transition(CHANGING, "a view with it was decided", STEADY, "the view and the union of the reports are installed"),
    Transition(CHANGING, "too few are heard", ISOLATED, "the driver is told; what was promised still holds"),
    Transition(CHANGING, "a view without it was decided", OUT, "its life is over: excluded, or left in order"),
    Transition(ISOLATED, "enough are heard again", STEADY, "calls are served again"),
    Transition(ISOLATED, "enough are heard again, and it has promised", CHANGING, "the change goes on"),
    Transition(ISOLATED, "a view with it was decided", STEADY, "installed: those it missed have left"),
    Transition(ISOLATED, "it is told of a later view without it", OUT, "its life is over"),
    Transition(OUT, "its process begins anew", OUTSIDER, "a new incarnation, which remembers only the last version"),
)


def state_of(out: bool, isolated: bool, deciding: bool) -> State:
    """Of one who is or was a member. Who is isolated may be deciding, too: it is told as what hurts more."""
    if out:
        return OUT
    if isolated:
        return ISOLATED
    return CHANGING if deciding else STEADY
