"""A9 in worlds where nothing but the group changes: whoever waits for longer than an agreement takes has stopped."""

import pytest

from framework.com.host import Host
from framework.sim.run import Options, run

SEEDS = 12
#: Much that needs nothing from those who leave: calls that go to one replica, and seldom meet another one.
GROUP = Options(
    {"ucast": 1.0, "conflict": 0.05, "levels": 1, "objects": 4, "clients": 6, "calls": 60, "pace": 8.0}, "group"
)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_calls_among_those_who_stay_go_on(seed: int) -> None:
    found = run(seed, GROUP)
    assert found.world.faults.punctual
    assert found.verdict.violations == []


def _when_all_are_heard(self: Host, real: object = Host.flush) -> None:
    """What the papers want: nothing is delivered before something newer has come from everybody."""
    detector = self.com.member.detector
    now = detector._looked_at or 0.0
    if all(detector.silence(peer, now) < 2 * self.com.timing.delta for peer in detector._peers):
        real(self)  # type: ignore[operator]


def test_who_waits_for_everybody_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "flush", _when_all_are_heard)
    rules = set()
    for seed in range(SEEDS):
        rules |= {v.rule for v in run(seed, GROUP).verdict.violations}
        if "A9" in rules:
            return
    pytest.fail(f"{SEEDS} seeds, and A9 was not among what was broken: {sorted(rules)}")


def test_other_worlds_are_not_asked() -> None:
    """A frame that is lost delays a request, whoever stays."""
    assert not run(3, Options(faults="all")).world.faults.punctual
