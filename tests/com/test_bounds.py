"""What is bounded may be bounded as tightly as you like: it costs more, but nothing goes wrong. And what is over
leaves nothing behind."""

from collections.abc import Callable
from functools import partial

import pytest

from framework.com import core, host, link, past
from framework.com.core import Com
from framework.com.epoch import Epoch
from framework.com.host import weight
from framework.com.limits import Limits
from framework.com.link import Timing
from framework.com.replies import Replies
from framework.ids import Invocation, Node, Replica
from framework.sim import world as worlds
from framework.sim.run import Options, Run, run
from tests.paper.stage import Stage

from .test_replies import Host

SHAPES: list[dict[str, object]] = [
    {"back": 0.9, "wide": 0.7, "conflict": 0.5},
    {"repeat": 0.7, "later": 0.3, "oneway": 0.3},
    {"depth": 4, "levels": 4, "objects": 6, "back": 0.9, "wide": 0.5},
    {"ucast": 0.0, "oneway": 0.6, "conflict": 0.3, "readonly": 0.5, "wide": 0.7},
]

Patch = pytest.MonkeyPatch


def fold(patch: Patch) -> None:
    """Stamps of what is past: one each."""
    patch.setattr(past, "FOLD", 1)
    patch.setattr(past, "LATEST", 1)


def log(patch: Patch) -> None:
    """Delivered marks: nearly always the whole state instead of the difference."""
    patch.setattr(link, "BOUND", 3)


def window(patch: Patch) -> None:
    """Two frames of two messages on their way."""
    patch.setattr(worlds, "TIMING", Timing(25.0, 8.0, 60.0, window=2, batch=2, burst=1))


def queue(patch: Patch) -> None:
    """One message for a peer, then clients wait."""
    patch.setattr(core, "Limits", partial(Limits, queued=1))


def replies(patch: Patch) -> None:
    """Two replies per replica that nobody asks for."""
    patch.setattr(host, "Replies", partial(Replies, 2))


def epochs(patch: Patch) -> None:
    """An epoch of one slot."""
    patch.setattr(host, "Epoch", partial(Epoch, bound=1))


def everything(patch: Patch) -> None:
    for tighten in (fold, log, window, queue, replies, epochs):
        tighten(patch)


TIGHT: list[Callable[[Patch], None]] = [fold, log, window, queue, replies, epochs, everything]


@pytest.mark.rotating(4)
@pytest.mark.parametrize("tighten", TIGHT, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_small_worlds_within_tight_bounds(
    tighten: Callable[[Patch], None], shape: dict[str, object], monkeypatch: Patch
) -> None:
    tighten(monkeypatch)
    for seed in range(5):
        assert run(seed, Options(shape=shape)).verdict.violations == [], f"seed {seed}"


def left_over(com: Com) -> dict[str, object]:
    """All that should be empty when everything is over, and is not."""
    out: dict[str, object] = {
        "waiting": com.waiting,
        "instances": com.instances,
        "local": com._local,
        "calls.waiting": com.calls._waiting,
        "calls.backlog": com.calls.backlog.lines,
        "calls.postponed": com.calls.backlog.count,
        "callers": [c for c in com.calls.callers.values() if not c.client],
        "joins": {c.client for c in com.calls.sessions.values() if c.joins},
    }
    for at, replica in com.hosts.items():
        order = replica.order
        for name in ("entries", "_by_mark", "awaited", "copies", "_joining", "_todo", "out"):
            out[f"{at} order.{name}"] = getattr(order, name)
        for name in ("_waiting", "running", "performing"):
            out[f"{at} ahead.{name}"] = getattr(order.ahead, name)
        out[f"{at} held"] = replica._held
        out[f"{at} size"] = replica.kept.size - sum(weight(e.request) for e in replica.kept if e.request)
        out[f"{at} unsafe"] = replica.answers.unsafe
        out[f"{at} gaps"] = [r.above for r in order.past.delivered.values() if r.above]
        out[f"{at} nested replies"] = [i for i in replica.replies._replies if len(i.path) > 1]
        out[f"{at} copies"] = [i for i, r in replica.replies._replies.items() if r.waiting]
    return {name: thing for name, thing in out.items() if thing}


def forget_what_nobody_collected(done: Run) -> None:
    """Answers that a client never asked for are kept for as long as its session."""
    for node in done.world.nodes.values():
        for session in node.com.calls.sessions.values():
            assert not [c for c in session.calls.values() if c.receipt is not None]
            for call in session.calls.values():
                node.com.calls._waiting.pop(call.group, None)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_world_that_is_over_leaves_nothing(shape: dict[str, object]) -> None:
    for seed in range(10):
        done = run(seed, Options(shape=shape))
        forget_what_nobody_collected(done)
        for name, node in done.world.nodes.items():
            assert left_over(node.com) == {}, f"seed {seed}, {name}"


def test_what_is_kept_is_counted_whatever_happens_to_the_group() -> None:
    """Nodes hold clients back by it: if it only grew, they would do so for ever."""
    for seed in range(20):
        done = run(seed, Options(faults="all"))
        for name, node in done.world.nodes.items():
            for at, replica in node.com.hosts.items() if node.com is not None else ():
                here = [e.request for e in (*replica.order.entries.values(), *replica.kept) if e.request is not None]
                assert replica.kept.size == sum(weight(request) for request in here), f"seed {seed}, {name}, {at}"


def test_a_peer_that_missed_the_log_is_told_everything(monkeypatch: Patch) -> None:
    """Else contexts would name for ever what has long been delivered."""
    log(monkeypatch)
    s = Stage("i j k")
    s.object("f", "i", at_once=True)
    s.object("g", "j", at_once=True)
    s.mute("i->j", "i->k")
    client = s.client("T", "k")
    for _ in range(20):
        client.oneway("f.x@i")
    assert len(s.com("i").marks._log) <= link.BOUND
    s.settle()
    s.tick(s.timing.delta)
    for node in ("j", "k"):
        assert s.com(node).known.ranges(Replica("f@i"), Node("k")).low == 20
    client.oneway("g.x@j", "last")
    assert s.carried("last") == {}


# replies


def test_replies_are_bounded_also_behind_long_running_ones() -> None:
    """Those that run stood in front, were looked at first each time, and nothing was forgotten."""
    h = Host(16)
    running = [Invocation("long", (n,)) for n in range(1, 13)]
    for invocation in running:
        h.arrive(invocation, 1, 0)
    for n in range(500):
        h.arrive(Invocation(f"c{n}", (1,)), 1, 0)
        h.finish(Invocation(f"c{n}", (1,)))
        assert len(h.replies) <= 16 + len(running)
    assert all(h.replies.get(invocation) is not None for invocation in running)


def test_a_late_copy_of_a_nested_call_is_never_performed_again() -> None:
    """Its reply went to make room for others, then even that it was performed; the copy that was still to come was
    performed. Replies that callers wait for stay, however many there are."""
    h = Host(16)
    nested = [Invocation("ann", (1, n)) for n in range(500)]
    for invocation in nested:
        h.arrive(invocation, 2, 0)
        h.finish(invocation)
    for invocation in nested:
        h.arrive(invocation, 2, 0)
    assert set(h.performed.values()) == {1}
    assert len(h.replies) == 0


def test_tombs_are_bounded() -> None:
    h = Host(2)
    for n in range(500):
        h.arrive(Invocation("ann", (1, n)), 1, 0)
        h.finish(Invocation("ann", (1, n)))
    assert len(h.replies._tombs) == 16 * 2
