"""A call is performed at most once per replica (A1), whatever comes again, is acknowledged or is evicted."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.com.messages import Request
from framework.com.replies import Replies
from framework.ids import GroupId, Invocation, Replica
from tests.tiers import examples

quick = settings(derandomize=True, deadline=None, max_examples=examples(50, 200))


def request(invocation: Invocation, copies: int = 1, done: int = 0) -> Request:
    group = GroupId(1, Replica("tran@n1"), 0)
    target = Replica("f@n1")
    return Request(
        1, group, invocation, "sync", target, (), (), 1, False, (), (), copies, done, b""
    )  # fmt: skip


class Host:
    """What a host does with copies of calls, and nothing else: perform, keep waiting, answer."""

    def __init__(self, bound: int) -> None:
        self.replies = Replies(bound)
        self.performed: Counter[Invocation] = Counter()
        self.answers: Counter[Invocation] = Counter()
        self.came: Counter[Invocation] = Counter()
        self.running: dict[Invocation, Any] = {}

    def arrive(self, invocation: Invocation, copies: int, done: int) -> None:
        self.came[invocation] += 1
        copy = request(invocation, copies, done)
        if invocation not in self.replies:
            self.performed[invocation] += 1
            self.running[invocation] = self.replies.start(copy)
            return
        reply = self.replies.get(invocation)
        if reply is not None and reply.status is None:
            reply.waiting.append(copy)
        else:
            self._answer(invocation)

    def finish(self, invocation: Invocation) -> None:
        reply = self.running.pop(invocation)
        reply.status = "ok"
        self._answer(invocation)
        for _ in self.replies.finish(invocation, reply):
            self._answer(invocation)

    def _answer(self, invocation: Invocation) -> None:
        self.answers[invocation] += 1
        self.replies.answered(invocation)


calls = st.tuples(st.sampled_from(["ann", "bob"]), st.integers(0, 6), st.sampled_from([(), (1,), (2,), (1, 1)]))
steps = st.lists(st.tuples(calls, st.booleans(), st.integers(0, 6)), max_size=80)


@quick
@given(steps=steps, bound=st.integers(1, 20))
def test_at_most_once_and_every_copy_is_answered(steps: list[Any], bound: int) -> None:
    """Replicas of a caller make two copies of each nested call, a client repeats its calls as often as it likes."""
    host = Host(bound)
    acknowledged: Counter[str] = Counter()
    for (client, number, nested), finish, done in steps:
        invocation = Invocation(client, (number, *nested))
        if finish:
            if invocation in host.running:
                host.finish(invocation)
            continue
        if nested and host.came[invocation] == 2:
            continue  # links deliver each copy once
        if not nested and number < acknowledged[client]:
            continue  # the client has its answer
        done = min(done, number)
        acknowledged[client] = max(acknowledged[client], done)
        host.arrive(invocation, 2 if nested else 1, done)
    for invocation in list(host.running):
        host.finish(invocation)
    assert max(host.performed.values(), default=0) <= 1
    assert host.answers == host.came
    assert host.performed.keys() == host.came.keys()


@quick
@given(steps=steps)
def test_a_repeated_call_of_a_client_is_never_performed_again(steps: list[Any]) -> None:
    """Not even one that it said it has the answer of (protocol.md §3.2: duplicates are found by the invocation id)."""
    host = Host(1)
    for (client, number, _), finish, done in steps:
        invocation = Invocation(client, (number,))
        if not finish:
            host.arrive(invocation, 1, min(done, number))
        elif invocation in host.running:
            host.finish(invocation)
    assert max(host.performed.values(), default=0) <= 1


def test_a_nested_call_is_forgotten_when_all_copies_are_answered() -> None:
    host = Host(1000)
    for n in range(50):
        for copy in range(3):
            host.arrive(Invocation("ann", (1, n)), 3, 0)
            if copy == 1:
                host.finish(Invocation("ann", (1, n)))
        assert len(host.replies) == 0
    assert len(host.replies._tombs) == 50, "that they were performed is remembered: a late copy is not performed again"


def test_what_a_client_has_answers_to_is_forgotten() -> None:
    host = Host(1000)
    for n in range(1, 200):
        host.arrive(Invocation("ann", (n,)), 1, n)
        host.finish(Invocation("ann", (n,)))
        assert len(host.replies) <= 2


def test_a_client_that_starts_far_from_1_costs_no_more() -> None:
    host = Host(1000)
    host.arrive(Invocation("ann", (1 << 40,)), 1, 1 << 40)
    host.finish(Invocation("ann", (1 << 40,)))
    assert len(host.replies) == 1


def test_what_still_runs_is_kept_when_its_client_has_its_answer() -> None:
    """Another replica answered first; copies that come must find that it runs here."""
    host = Host(1000)
    slow = Invocation("ann", (1,))
    host.arrive(slow, 1, 0)
    host.arrive(Invocation("ann", (2,)), 1, 2)
    assert host.replies.get(slow) is not None
    host.finish(slow)
    assert host.replies.get(slow) is None
    assert slow in host.replies


def test_finished_replies_are_bounded() -> None:
    """Beyond the bound the oldest calls of clients lose their reply, and are still not performed again (A1)."""
    host = Host(16)
    running = Invocation("long", (1,))
    host.arrive(running, 1, 0)
    nested = [Invocation("ann", (1, n)) for n in range(200)]
    roots = [Invocation(f"c{n}", (1,)) for n in range(200)]
    for pair in zip(nested, roots, strict=True):
        for invocation in pair:
            host.arrive(invocation, 1, 0)
            host.finish(invocation)
            assert len(host.replies) <= 16 + 1
    assert host.replies.get(nested[0]) is None
    assert host.replies.get(roots[0]) is None
    assert host.replies.get(running) is not None
    for invocation in (*nested, *roots):
        assert invocation in host.replies
        host.arrive(invocation, 1, 0)
    assert set(host.performed.values()) == {1}


def test_a_reply_that_callers_wait_for_is_kept() -> None:
    """Replicas of a caller must get the same answer: whoever is late, too."""
    host = Host(16)
    nested = [Invocation("ann", (1, n)) for n in range(100)]
    for invocation in nested:
        host.arrive(invocation, 2, 0)
        host.finish(invocation)
    assert all(host.replies.get(invocation) is not None for invocation in nested)


def test_one_call_is_not_taken_for_another() -> None:
    replies = Replies()
    replies.start(request(Invocation("ann", (1,))))
    assert Invocation("ann", (1,)) in replies
    assert Invocation("ann", (2,)) not in replies
    assert Invocation("ann", (1, 1)) not in replies
    assert Invocation("bob", (1,)) not in replies
