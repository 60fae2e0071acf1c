"""What a caller hands over, judged before anything is sent: what a node could not read would break the stream.

Each check returns the value as the framework uses it, or raises BadRequest that says what was wrong and what to write.
"""

from collections.abc import Sequence
from inspect import iscoroutine
from typing import Any, get_args

from framework.com.receipt import Receipt, Way
from framework.declare import Method
from framework.errors import BadRequest
from framework.ids import Replica, check_name, object_of

#: Seconds. A call always ends.
LONGEST = 86_400.0

_WAYS = get_args(Way)


def seconds(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRequest(f"{what}={value!r:.80}: give seconds as a number, not {kind(value)}")
    if not 0 < value <= LONGEST:  # not a number is neither
        raise BadRequest(f"{what}={value!r:.80}: give more than 0 and at most {LONGEST:g} seconds")
    return float(value)


def seconds_or_none(value: object, what: str) -> float | None:
    return None if value is None else seconds(value, what)


def receipt(value: object, what: str) -> Receipt:
    if not isinstance(value, Receipt) or value.way not in _WAYS:
        raise BadRequest(f"{what}: receipt={value!r:.80} is no receipt: use ALL, FIRST or quorum(r) of framework")
    if value.way == "quorum":
        count(value.r)
    if value.source is not None and not isinstance(value.source, str):
        raise BadRequest(f"{what}: the source of a receipt is a replica such as 'bank@n2', not {kind(value.source)}")
    return value


def stale(value: object, method: Method | None, what: str) -> bool:
    if not isinstance(value, bool):
        raise BadRequest(f"{what}: stale={value!r:.80}: give True or False, not {kind(value)}")
    if value and method is not None and not method.readonly:
        raise BadRequest(f"{what} is not declared readonly: only what changes nothing can be stale")
    return value


def count(r: object) -> int:
    if isinstance(r, bool) or not isinstance(r, int) or not 1 <= r < 1 << 31:
        raise BadRequest(f"quorum({r!r:.80}): give how many replies are needed of each object: 1 or more")
    return r


def replica(value: object, objects: Sequence[str], what: str) -> Replica:
    """Which replicas there are is known to the node; what their names look like is known here."""
    form = f"a replica of it is written {objects[0] if objects else 'bank'}@NODE"
    if not isinstance(value, str):
        raise BadRequest(f"{what}: {value!r:.80} is {kind(value)}, not the name of a replica; {form}")
    name, _, node = value.partition("@")
    if name not in objects or not node:
        raise BadRequest(f"{what}: {value!r:.80} is no replica of {' or '.join(objects)}; {form}")
    check_name(node, f"{what}: the node of replica {value!r:.80}:")
    return Replica(value)


def replicas(value: object, name: str, what: str) -> tuple[Replica, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        shown = f'["{value}"]' if isinstance(value, str) else f'["{name}@NODE"]'
        raise BadRequest(f"{what}: to={value!r:.80} is {kind(value)}: give a list of replicas, to={shown}")
    found = tuple(replica(one, (name,), what) for one in value)
    if not found:
        raise BadRequest(f"{what}: to=[] names no replica: leave it out for all")
    if len(set(found)) != len(found):
        raise BadRequest(f"{what}: to={list(found)} names a replica twice")
    return found


def no_request(value: object, way: str) -> BadRequest:
    """For what was called, or not even that, in the place of a request."""
    if iscoroutine(value):
        value.close()  # it has not begun; nobody will await it
    return BadRequest(
        f"{way} takes requests, not {kind(value)}: use bank.balance.request(...), which sends nothing yet"
    )


def one_of_each(names: Sequence[str]) -> None:
    if not names:
        raise BadRequest("pcast() has no request: give one for each object")
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise BadRequest(f"pcast has two requests for {twice}: it takes one for each object; send the other by mcast")


def not_sent(value: object, way: str) -> BadRequest:
    if iscoroutine(value):
        value.close()
        return BadRequest(f"{way} takes what ucast, mcast or pcast gave, and that has to be awaited first")
    return BadRequest(
        f"{way} takes what ucast, mcast or pcast gave, not {kind(value)}: use bank.balance.request(...) and send that"
    )


def object_name(name: object, cls: type | None) -> str:
    if name is None and cls is not None:
        raise BadRequest(f'which {cls.__name__}? Give its name, too: object({cls.__name__}, "name")')
    if not isinstance(name, str):
        raise BadRequest(f"object: the name is {kind(name)} {name!r:.80}, not a text such as 'bank'")
    if "@" in name:
        raise BadRequest(f"object: {name!r:.80} is a replica; its object is {object_of(Replica(name))!r:.80}")
    return check_name(name, "object")


def kind(value: Any) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
