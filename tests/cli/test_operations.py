"""The operations guide knows every line of obo status, and everything it names is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from framework.cli.commands import COMMANDS
from framework.testing import cluster
from objects.counter import Counter

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "operations.md").read_text()
BY_NAME = {
    "links",
    "replicas",
    "clients",
    "members",
    "suspected",
    "unready",
}  # their keys are names of nodes and the like


def keys(told, found):
    """All names of fields, below lists and tables too."""
    for key, value in told.items():
        found.add(key)
        for inner in value.values() if key in BY_NAME and isinstance(value, dict) else [value]:
            for one in inner if isinstance(inner, list) else [inner]:
                if isinstance(one, dict):
                    keys(one, found)
    return found


def test_every_field_of_obo_status_is_explained():
    with cluster({"counter": Counter}, nodes=2) as c:
        orb = c.connect("n1")
        orb.object(Counter, "counter").increment()
        c.cut("n1", "n2", silently=True)
        under_way = orb.object(Counter, "counter").increment.submit()
        told = [c.look("n1")]
        while not (told[-1]["waiting"] and told[-1]["calls"]):
            told.append(c.look("n1"))
        c.heal()
        under_way.result()
        found = keys(told[-1], set())
    assert {"waited", "queued", "rss", "why", "missing", "stage"} <= found
    lacks = sorted(key for key in found if f"`{key}`" not in GUIDE)
    assert not lacks, f"docs/operations.md does not explain {lacks}"


def test_every_column_of_obo_status_is_explained():
    source = (ROOT / "framework" / "cli" / "status.py").read_text()
    titles = re.findall(r'title="([A-Z][a-z ]+)[":]', source)
    assert len(titles) == 8
    assert not [t for t in titles if f"**{t}**" not in GUIDE]


@pytest.mark.parametrize(
    "page", ["operations", "compose", "demos", *(f"demos/{p.stem}" for p in (ROOT / "docs/demos").glob("*"))]
)
def test_links_lead_somewhere_and_commands_exist(page):
    path = ROOT / "docs" / f"{page}.md"
    text = path.read_text()
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert (path.parent / target).exists(), target
    assert set(re.findall(r"`obo ([a-z0-9]+)", text)) <= set(COMMANDS)
    for module in re.findall(r"python -m examples\.(\w+)", text):
        assert (ROOT / "examples" / f"{module}.py").exists()


@pytest.mark.parametrize(
    ("command", "others"), [("serve", False), ("health", False), ("--help", True), ("staus", True)]
)
def test_a_command_imports_no_other_one(command: str, others: bool) -> None:
    look = f"import sys; sys.argv[1:] = ['{command}']; import framework.cli.commands; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split()
    assert (f"framework.cli.{command}" in found) is not others
    assert ("framework.cli.sim" in found) is others
