"""The pytest fixture ``obo_cluster``. pytest finds it by itself where this package is installed.

It is imported at each start of pytest, so it is cheap: gRPC comes along when a test asks for a cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from framework.declare import Object

if TYPE_CHECKING:
    from framework.testing.clusters import Cluster


class MakeCluster(Protocol):
    """The type of the fixture: ``cluster`` of framework.testing, already started."""

    def __call__(
        self,
        objects: Mapping[str, type[Object] | str],
        nodes: int | Sequence[str] = 3,
        *,
        processes: bool = False,
        on: Mapping[str, Sequence[str]] | None = None,
        tls: bool = False,
        verify: bool = True,
    ) -> "Cluster": ...


@pytest.fixture
def obo_cluster(tmp_path: Path) -> Iterator[MakeCluster]:
    """Makes clusters for one test: ``c = obo_cluster({"bank": Bank}, nodes=3)``.

    Traces and logs go to ``tmp_path``. At the end of the test each cluster is verified, unless the test has done so or
    said ``verify=False``, and all that was started is ended."""
    made: list[Cluster] = []
    judged: list[Cluster] = []

    def make(
        objects: Mapping[str, type[Object] | str],
        nodes: int | Sequence[str] = 3,
        *,
        processes: bool = False,
        on: Mapping[str, Sequence[str]] | None = None,
        tls: bool = False,
        verify: bool = True,
    ) -> "Cluster":
        from framework.testing.clusters import cluster

        directory = tmp_path / f"cluster-{len(made) + 1}"
        started = ends.enter_context(cluster(objects, nodes, processes=processes, on=on, tls=tls, trace=directory))
        made.append(started)
        if verify:
            judged.append(started)
        return started

    with ExitStack() as ends:
        yield make
        for one in judged:
            if not one.verified:
                one.verify()
