"""Every demo runs as its page says, finds that all holds, and leaves nothing behind; and it can find the contrary."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run_obo import surroundings
from tests.examples.test_examples import DEMOS, PATIENCE, alive, run
from tests.tiers import only_full

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", [name if name in ("booking", "ordering") else only_full(name) for name in DEMOS])
def test_a_demo_holds(name, tmp_path):
    done = run(name, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "All of it holds."
    assert "✓" in done.stdout and "✗" not in done.stdout
    assert not alive(str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_has_a_page(name):
    """One command each, in docs/demos.md, with what it shows."""
    text = (ROOT / "docs" / "demos" / f"{name}.md").read_text()
    assert f"python -m examples.{name}" in text
    assert f"demos/{name}.md" in (ROOT / "docs" / "demos.md").read_text()
    source = (ROOT / "examples" / f"{name}.py").read_text()
    for said in re.findall(r"^ {6}✓  (.*)$", text, re.M):  # what the page shows is still what it says
        assert all(word in source for word in re.findall(r"[a-z]{4,}", said.partition(":")[0])), said


def test_a_check_that_does_not_hold_is_told_and_ends_with_1(tmp_path):
    program = """
from examples.stage import stage
with stage("a demo", counter="objects.counter:Counter") as s:
    with s.connect() as orb:
        orb.object("counter").increment(2)
        s.check(orb.object("counter").show() == 3, "two is three")
        s.check(True, "the sky is blue")
"""
    done = _python(program, tmp_path)
    assert done.returncode == 1, done.stderr
    assert "✗  NOT SO: two is three" in done.stdout and "✓  the sky is blue" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 of it did not hold."
    assert not alive(str(tmp_path)) and not list(tmp_path.iterdir())


def test_a_demo_on_nodes_that_are_not_there_says_so(tmp_path):
    done = run("failover", "--at", "127.0.0.1:1", TMPDIR=str(tmp_path))
    assert done.returncode == 1 and "the demo has failed: Unavailable" in done.stderr
    assert "Traceback" not in done.stderr


def _python(program, tmp_path):
    return subprocess.run(
        [sys.executable, "-c", program],
        env=surroundings(TMPDIR=str(tmp_path)),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
