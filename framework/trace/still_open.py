"""What is not over at a node, and why: for the end of a trace, and for people who ask what a node waits for."""

from framework.com.core import Com


def still_open(com: Com) -> list[str]:
    """What is not over at a node, and why: the answer to "what does it wait for?"."""
    out = []
    for at, host in com.hosts.items():
        for entry in host.order.entries.values():
            out.append(f"{entry.group} {entry.footprint} waiting at {at}: {host.order.blockers(entry)}")
    for instance in com.instances.values():
        out.append(f"instance {instance.sid} of {instance.invocation} still running")
    for caller in com.calls.callers.values():
        for call in caller.calls.values():
            if call.receipt is not None:
                missing = sorted(set(call.dests) - set(call.got))
                out.append(f"{caller.sid} waiting for {call.receipt} of {call.group}, no response from {missing}")
    for link in com.links.values():
        if link.queued or link.unacked:
            out.append(f"{link.queued} messages queued and {link.unacked} frames unacknowledged for {link.peer}")
    return out
