"""``obo conflicts`` and the frame of all commands: as a user runs it, in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

from framework import __version__


def obo(*words, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-P", "-m", "framework.cli.main", *words],  # -P: as the script, which adds no directory
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": os.getcwd(), **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_version():
    assert obo("--version").stdout == f"obo {__version__}\n"


def test_the_table_of_the_bank():
    done = obo("conflicts", "objects.bank:Bank")
    assert done.returncode == 0, done.stderr
    cells = [[c.strip() for c in line.split("│")[1:-1]] for line in done.stdout.splitlines() if "│" in line]
    assert cells == [
        ["audit (readonly)", "·", "·", "●", "●", "●", ""],
        ["balance (readonly)", "·", "·", "◐", "◐", "◐", "account"],
        ["deposit", "●", "◐", "·", "◐", "◐", "account"],
        ["transfer", "●", "◐", "◐", "◐", "◐", "source, target"],
        ["withdraw", "●", "◐", "◐", "◐", "◐", "account"],
    ]
    assert "● conflict: one order at all replicas   ◐ conflict where keys meet   · compatible" in done.stdout


def test_without_keys_the_legend_has_no_keys():
    done = obo("conflicts", "objects.counter:Counter")
    assert "●" in done.stdout
    assert "◐" not in done.stdout


def test_a_terminal_without_the_signs():
    done = obo("conflicts", "objects.bank:Bank", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "k conflict where keys meet" in done.stdout


def test_json():
    said = json.loads(obo("conflicts", "objects.bank:Bank", "--json").stdout)
    assert said["class"] == "objects.bank:Bank"
    assert [m["name"] for m in said["methods"]] == ["audit", "balance", "deposit", "transfer", "withdraw"]
    assert said["methods"][1] == {
        "name": "balance",
        "readonly": True,
        "async": False,
        "key": "account",
        "parameters": [{"name": "account", "type": "str", "required": True}],
        "returns_value": True,
    }
    assert {"first": "deposit", "second": "withdraw", "when": "keys meet"} in said["conflicts"]
    assert {"first": "audit", "second": "deposit", "when": "always"} in said["conflicts"]
    assert not any({c["first"], c["second"]} == {"deposit"} for c in said["conflicts"])


MINE = """
from framework import Object, method

class Mine(Object):
    @method(key=lambda cells: cells)
    def touch(self, cells: list[str]) -> None: ...

class Plain: ...
number = 3
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "wrong.py").write_text(MINE.replace("def touch", "def _touch"))
    (tmp_path / "needs.py").write_text("import nowhere_at_all")
    (tmp_path / "broken.py").write_text("def")
    (tmp_path / "fails.py").write_text("raise ValueError('one\\ntwo')")
    return tmp_path


def test_a_module_of_the_current_directory(here):
    done = obo("conflicts", "mine:Mine", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "function(cells)" in done.stdout


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("mine", "'mine' names no class: write module:Class, for example objects.bank:Bank"),
        (":Mine", "write module:Class"),
        ("mine:", "write module:Class"),
        ("minus:Mine", "there is no module 'minus'"),
        ("objects.bnk:Bank", "there is no module 'objects.bnk'"),
        ("mine:Mime", "module mine has no class 'Mime'; did you mean 'Mine'?"),
        ("mine:Zzz", "module mine has no class 'Zzz'; known: Mine"),
        ("mine:Plain", "mine:Plain is no Object: write class Plain(Object)"),
        ("mine:number", "mine:number is no Object"),
        ("wrong:Mine", "Mine._touch: a name that starts with '_' is private"),
        ("needs:Mine", "module needs cannot be imported: No module named 'nowhere_at_all'"),
        ("broken:Mine", "module broken cannot be imported: SyntaxError"),
        ("fails:Mine", "module fails cannot be imported: ValueError: one two"),
        (".:Mine", "module . cannot be imported"),
    ],
)
def test_mistakes_are_one_line(here, target, words):
    done = obo("conflicts", target, cwd=here)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("obo: error: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
