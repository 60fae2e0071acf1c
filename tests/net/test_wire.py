"""The generated code is in step with proto/ (style is a test)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
WIRE = ROOT / "framework" / "net" / "wire"


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    pytest.importorskip("grpc_tools")
    out = tmp_path_factory.mktemp("wire")
    command = [sys.executable, "-m", "grpc_tools.protoc", "-Iframework/net/wire=proto"]
    outputs = [f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python")]
    names = [f"framework/net/wire/{p.name}" for p in sorted((ROOT / "proto").glob("*.proto"))]
    subprocess.run([*command, *outputs, *names], cwd=ROOT, check=True, timeout=60)
    return out / "framework" / "net" / "wire"


def test_generated_code_is_in_step_with_proto(generated):
    fresh = {p.name: p.read_text() for p in generated.iterdir()}
    kept = {p.name: p.read_text() for p in WIRE.glob("*_pb2*")}
    assert kept.keys() == fresh.keys()
    for name, text in fresh.items():
        assert kept[name] == text, f"{name} is not what proto/ says: make proto"
