"""A node that catches up with what waited for its state does so in small steps that come often."""

import asyncio
from types import SimpleNamespace

import pytest

from framework.orb import node
from framework.orb.life import SHORT_TICK, TICK, Life
from framework.orb.node import Node


@pytest.mark.parametrize(("behind", "expected"), [(True, SHORT_TICK), (False, TICK)])
def test_it_ticks_more_often(monkeypatch, behind, expected):
    slept, host = [], SimpleNamespace(order=SimpleNamespace(late=SimpleNamespace(behind=behind)))
    one = Node.__new__(Node)
    one.member = Life.__new__(Life)
    one.member.com = SimpleNamespace(hosts={"bank@n1": host})

    async def sleep(seconds):
        slept.append(seconds)
        raise asyncio.CancelledError

    monkeypatch.setattr(node.asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(one._tick())
    assert slept == [expected] and SHORT_TICK < TICK
