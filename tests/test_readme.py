"""What the README shows works."""

import re
from pathlib import Path

from framework.testing import check_conflicts

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_is_a_class_whose_conflicts_are_true() -> None:
    code = re.findall(r"```python\n(.*?)```", README, re.S)[0]
    names: dict[str, object] = {"__name__": "readme"}
    exec(compile(code, "README.md", "exec"), names)
    report = check_conflicts(names["Account"])  # type: ignore[arg-type]
    assert not report.needless, report


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_command_it_names_exists() -> None:
    from framework.cli.main import COMMANDS

    named = set(re.findall(r"`obo ([a-z0-9]+)", README))
    assert named == set(COMMANDS)


def test_make_targets_it_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([a-z0-9]+)", README, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target
