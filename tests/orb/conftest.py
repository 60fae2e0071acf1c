"""What tests of several files here need."""

import pytest

from framework.orb.performance import Performance


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Methods that were performed the usual way."""
    seen: list[str] = []
    begun = Performance.__init__

    def init(self, stage, resident, effect, called, envelope):  # type: ignore[no-untyped-def]
        seen.append(called.name)
        begun(self, stage, resident, effect, called, envelope)

    monkeypatch.setattr(Performance, "__init__", init)
    return seen
