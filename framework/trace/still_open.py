"""What is not over at a node, and why: for the end of a trace, and for people who ask what a node waits for."""

from framework.com.core import Com
from framework.ids import Node


def still_open(com: Com) -> list[str]:
    """Everything: requests, instances, receipts, and what waits for peers."""
    return [*open_calls(com), *open_links(com).values()]


def open_calls(com: Com) -> list[str]:
    """Requests that wait, instances that run or are not answered, receipts that are incomplete."""
    out = []
    for at, host in com.hosts.items():
        for entry in host.order.entries.values():
            out.append(f"{entry.group} {entry.footprint} waiting at {at}: {host.order.blockers(entry)}")
        for invocation in host.answers.waiting():
            out.append(f"{invocation} performed at {at}, but it is not safe yet, and nobody is told")
    for name, many in com.trans.held.items():
        out += [f"{k.instance.invocation} of transaction {name} held at {k.host.replica}" for k in many]
    for instance in com.instances.values():
        out.append(f"instance {instance.sid} of {instance.invocation} still running")
    for caller in com.calls.callers.values():
        for call in caller.calls.values():
            if call.receipt is not None:
                missing = sorted(set(call.dests) - set(call.got))
                out.append(f"{caller.sid} waiting for {call.receipt} of {call.group}, no response from {missing}")
    return out


def open_links(com: Com) -> dict[Node, str]:
    """What a peer has not taken, or not acknowledged."""
    return {
        link.peer: f"{link.queued} messages queued and {link.unacked} frames unacknowledged for {link.peer}"
        for link in com.links.values()
        if link.queued or link.unacked
    }
