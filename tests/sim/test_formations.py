"""Worlds whose nodes all lose all they have, once or twice, while clients go on with the sessions they were given."""

import pytest

from framework.com.calls import Calls
from framework.com.events import Submit
from framework.com.telling import Forgotten
from framework.errors import BadMessage, BadRequest
from framework.sim.node import SimNode
from framework.sim.run import Options, build, run
from tests.tiers import worlds

WIPED = Options(faults="wiped")


def _takes_all(self: Calls, event: Submit) -> Submit:
    return event


def test_a_group_that_has_lost_all_begins_with_the_first_view() -> None:
    found = run(3, WIPED)
    assert found.verdict.violations == []
    assert found.world.earlier
    for traces in (*found.world.earlier, found.traces):
        assert min(t.header.view for t in traces) == 1
    formations = [node.view.formation for node in found.world.nodes.values() if node.com is not None]
    assert len(set(formations)) == 1 and formations[0] != build(3, WIPED).directory.view.formation


@pytest.mark.parametrize("seeds", worlds(12, 60))
def test_clients_go_on_in_the_group_that_follows(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten = 0

    def carry(self: SimNode, effect: object, real: object = SimNode._carry_out) -> None:
        nonlocal forgotten
        forgotten += isinstance(effect, Forgotten)
        real(self, effect)  # type: ignore[operator]

    monkeypatch.setattr(SimNode, "_carry_out", carry)
    for seed in seeds:
        assert run(seed, WIPED).verdict.violations == [], f"seed {seed}"
    assert forgotten


def test_who_takes_sessions_of_another_formation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls wait for requests that nobody sends, or a peer refuses the frame that brings them, for ever."""
    monkeypatch.setattr(Calls, "_of_this_group", _takes_all)
    for seed in range(12):
        try:
            if run(seed, WIPED).verdict.violations:
                return
        except (BadRequest, BadMessage):
            return
    pytest.fail("12 seeds, and nothing was broken")
