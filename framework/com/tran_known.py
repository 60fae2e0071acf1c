"""Which transactions a node knows of, for people."""

from typing import TYPE_CHECKING

from framework.ids import Invocation

if TYPE_CHECKING:
    from framework.com.tran import Trans


def known(trans: "Trans") -> dict[Invocation, str]:
    """Those that are not over and have something here, and how far each is: a client's is open until it says commit; a
    root runs, or has ended and is being decided; others have parts here."""
    instances = trans.com.instances.values()
    parts = [i.entry.tran for i in instances]
    found = dict.fromkeys([*trans.held, *[n for n in parts if n is not None]], "has parts here")
    found |= {i.invocation: "runs" for i in instances if i.dependents and i.entry.tran is None}
    found |= dict.fromkeys(trans.open, "open")
    found |= dict.fromkeys([*trans.roots, *trans.ends], "is being decided")
    return {name: how for name, how in found.items() if name not in trans.outcomes}
