"""What the README and the guide show works: every block of them is run."""

import re
from pathlib import Path

import pytest

import framework
from framework.testing import check_conflicts
from tests.guide import Reader

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "docs" / "guide.md").read_text()


@pytest.fixture
def reader(tmp_path, ports, monkeypatch):
    """Of a guide, in an empty directory; its nodes are ended."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    made = []

    def make(guide):
        made.append(Reader(guide, tmp_path, ports(3)))
        return made[0]

    yield make
    made[0].end()


def test_the_readme(reader):
    """In a directory with the configurations of ``examples``, as a clone has them."""
    newcomer = reader("README.md")
    for name in ("cluster.toml", "sql.toml"):
        newcomer.write(f"examples/{name}", (ROOT / "examples" / name).read_text())
    newcomer.follow()


def test_the_guide(reader):
    reader("docs/guide.md").follow()


def test_what_the_guide_says_of_errors():
    """The table has every public error, and says of each whether it happened."""
    said = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| (yes|no|nobody knows) \|", GUIDE, re.M))
    words = {True: "yes", False: "no", None: "nobody knows"}
    errors = [getattr(framework, name) for name in framework.__all__]
    errors = [
        e for e in errors if isinstance(e, type) and issubclass(e, framework.OboError) and e is not framework.OboError
    ]
    assert said == {e.__name__: words[e.happened] for e in errors}


def test_the_object_of_20_lines_has_20_lines():
    text = (ROOT / "examples" / "own.py").read_text()
    code = [line for line in text.splitlines() if line.strip() and not line.startswith('"""')]
    assert len(code) <= 20


def test_the_example_is_a_class_whose_conflicts_are_true() -> None:
    code = re.findall(r"```python\n(.*?)```", README, re.S)[0]
    names: dict[str, object] = {"__name__": "readme"}
    exec(compile(code, "README.md", "exec"), names)
    report = check_conflicts(names["Account"])  # type: ignore[arg-type]
    assert not report.needless, report


@pytest.mark.parametrize("guide", ["README.md", "CONTRIBUTING.md", "docs/guide.md"])
def test_links_lead_somewhere(guide: str) -> None:
    path = ROOT / guide
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text()):
        assert (path.parent / target).exists(), target


def test_every_command_it_names_exists() -> None:
    from framework.cli.commands import COMMANDS

    named = set(re.findall(r"`obo ([a-z0-9]+)", README))
    assert named == set(COMMANDS)


@pytest.mark.parametrize("guide", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_it_names_exist(guide: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r"(?:^|`)make (?:[A-Z]+=\S+ )*([a-z][a-z0-9-]+)", (ROOT / guide).read_text(), re.M)
    assert named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.M), target
