"""A plain gRPC client that knows only proto/orb.proto, or not even that, against ``obo serve`` processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.processes import processes

HERE = Path(__file__).parent
PROTO = HERE.parent.parent / "proto"


@pytest.fixture
def plain(tmp_path):
    """Run the client in a directory that has nothing but itself and what protoc made of the proto."""
    pytest.importorskip("grpc_tools")
    home = tmp_path / "plain"
    home.mkdir()
    outputs = [f"--python_out={home}", f"--grpc_python_out={home}"]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", *outputs, "orb.proto"]
    subprocess.run(command, check=True, timeout=60)
    shutil.copy(HERE / "plain_client.py", home)

    def run(*words):
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [sys.executable, "plain_client.py", *words]
        done = subprocess.run(
            command, cwd=home, env=clean, capture_output=True, encoding="utf-8", timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_a_client_that_knows_only_the_proto(ports, tmp_path, plain):
    with processes(ports(3), tmp_path) as run:
        for way, node in (("stubs", "n1"), ("reflection", "n3")):
            told = plain(way, run.at(node))
            assert told["strangers"] == []
            assert told["balance"] == "5"
            assert told["refused"] == ["UNKNOWN", f"RefusedError: {way} has 5, not 50", "RemoteError", "RefusedError"]
            assert told["unknown"][::2] == ["NOT_FOUND", "NoSuchObject"]
            assert told["unknown"][1] == "no object 'bnk'; did you mean 'bank'?"
            assert told["objects"] == ["bank", "counter", "odd", "shop"]
            assert told["methods"] == ["audit", "balance", "deposit", "transfer", "withdraw"]
            assert told["health"] == "SERVING"
            assert {"obo.orb.v1.Gateway", "obo.orb.v1.Session", "grpc.health.v1.Health"} <= set(told["services"])
        run.stop()
