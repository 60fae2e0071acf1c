"""Every stage is played to its end and judged by the definitions (framework.sim.oracle), whatever its test looks at."""

from collections.abc import Callable, Iterator

import pytest

from tests.paper.group_stage import GroupStage
from tests.paper.stage import Stage


@pytest.fixture
def set_up() -> Iterator[Callable[..., Stage]]:
    stages: list[Stage] = []

    def make(nodes: str) -> Stage:
        stages.append(Stage(nodes))
        return stages[-1]

    yield make
    for stage in stages:
        assert stage.finish().violations == []


@pytest.fixture
def set_up_group() -> Iterator[Callable[..., GroupStage]]:
    stages: list[GroupStage] = []

    def make(nodes: str, members: str = "") -> GroupStage:
        stages.append(GroupStage(nodes, members))
        return stages[-1]

    yield make
    for stage in stages:
        assert stage.finish().violations == []
