"""Groups of three nodes that many tests of a process share."""

import pytest

from framework.testing.postgres import servers
from tests.cluster.sql.group import NODES, Group


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def group(request, tmp_path_factory):
    """For random mixes: each leaves it without tables."""
    place = tmp_path_factory.mktemp("mixes")
    if request.param == "sqlite":
        with Group(place, {}) as made:
            yield made
    else:
        with servers(len(NODES), fsync=False) as started:
            urls = {node: server.create("mixes") for node, server in zip(NODES, started, strict=True)}
            with Group(place, {"urls": urls}, model=started[0].create("model")) as made:
                yield made
