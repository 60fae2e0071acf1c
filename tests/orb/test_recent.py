"""The last requests of a replica, packed: the same, in the same order, and not more of them than is said."""

import pytest

from framework.com.messages import Dest, Part, Request
from framework.com.spot import Spotted
from framework.footprint import Footprint
from framework.ids import GroupId, Invocation, ObjectName, Replica, Sid
from framework.orb import recent
from framework.orb.messages import Envelope, encode
from framework.orb.recent import REQUESTS, SECONDS, TOGETHER, Recent

AT, SENDER, DO = Replica("x@n1"), Replica("tran@n1"), Footprint("do")


def request(n: int, args: bytes = b"") -> Request:
    parts, dests = (Part(ObjectName("x"), DO),), (Dest(AT, n),)
    group = GroupId(1, SENDER, n)
    return Request(
        1, group, Invocation("ann", (n,)), "async", AT, dests, parts, n, False, (), (), 1, 0, args or b"%d" % n
    )


def test_the_last_ones_in_their_order() -> None:
    found = Recent()
    made = [request(n) for n in range(1, REQUESTS + 3 * TOGETHER)]
    for n, one in enumerate(made):
        found.add(one, n * 1e-6)
    assert found.requests() == tuple(made[-REQUESTS:])
    assert len(found._chunks) <= REQUESTS // TOGETHER + 3 and all(not c.plain for c in list(found._chunks)[:-1])


def test_only_as_many_are_unpacked_as_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head on disk has a thousand of them; with all unpacked for that the loop stood still for 0.1 s and more."""
    found = Recent()
    made = [request(n) for n in range(1, 20 * TOGETHER + 7)]
    for one in made:
        found.add(one, 0.0)
    unpacked: list[int] = []
    real = recent.Chunk.requests
    monkeypatch.setattr(recent.Chunk, "requests", lambda chunk: unpacked.append(chunk.count) or real(chunk))
    for most in (1, TOGETHER, TOGETHER + 3, 5 * TOGETHER):
        unpacked.clear()
        assert found.requests(most) == tuple(made[-most:])
        assert sum(unpacked) < most + 2 * TOGETHER


def test_with_some_that_were_performed_on_the_spot() -> None:
    found, sid, wanted = Recent(), Sid(2, AT), []
    for n in range(1, 3 * TOGETHER):
        envelope = Envelope(1.0, None, b"%d" % n)
        if n < TOGETHER or n % 3:
            wanted.append(request(n, encode(envelope)))
            found.add(wanted[-1], 0.0)
        else:
            group = GroupId(1, SENDER, n)
            spotted = Spotted(1, sid, sid, group, Invocation("ann", (n,)), "async", AT, n, DO, n, 0)
            found.spotted(spotted, envelope, 0.0)
            wanted.append(request(n, encode(envelope)))
    assert found.requests() == tuple(wanted)


def test_what_is_old_or_large_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recent([request(n) for n in range(1, TOGETHER + 1)])
    found.add(request(1000), SECONDS + 1.0)
    assert found.requests() == (request(1000),)
    monkeypatch.setattr(recent, "BYTES", 100 * TOGETHER)
    for n in range(5 * TOGETHER):
        found.add(request(2000 + n, b"x" * 50), SECONDS + 1.0)
    assert len(found.requests()) <= 3 * TOGETHER and found.requests()[-1] == request(2000 + n, b"x" * 50)
