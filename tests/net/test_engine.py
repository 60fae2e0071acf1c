"""gRPC reads its environment when it is imported: nothing of the framework may import it before framework.net does."""

import os
import subprocess
import sys

import pytest

from framework.net import ONE_THREAD

LOOK = """
import os, sys
class Look:
    def find_spec(self, name, path=None, target=None):
        if name == "grpc":
            print(os.environ.get("GRPC_EXPERIMENTS"), end=" ")
sys.meta_path.insert(0, Look())
import {module}
print(os.environ.get("GRPC_EXPERIMENTS"))
"""


def look(module: str, **environment: str) -> list[str]:
    clean = {k: v for k, v in os.environ.items() if k != "GRPC_EXPERIMENTS"}
    told = subprocess.run(
        [sys.executable, "-c", LOOK.format(module=module)],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.split()


@pytest.mark.parametrize("module", ["framework.orb.client", "framework.orb.node", "framework.orb.gateway"])
def test_the_engine_is_chosen_before_grpc_is_imported_and_children_choose_themselves(module: str) -> None:
    assert look(module) == [ONE_THREAD, "None"]


def test_what_the_user_says_stays() -> None:
    assert look("framework.orb.client", GRPC_EXPERIMENTS="-tcp_rcv_lowat") == ["-tcp_rcv_lowat", "-tcp_rcv_lowat"]
