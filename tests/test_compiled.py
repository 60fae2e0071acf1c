"""Compiled modules are used only where they are what the sources say."""

import ast
import json
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from framework import compiled

SOURCE = Path(compiled.__file__).parent / "com" / "lives.py"


def made(tmp_path: Path, name: str = "framework.com.lives") -> Path:
    (tmp_path / f"{name}{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    compiled.record([SOURCE], tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OBO_PURE", raising=False)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "modules", {n: m for n, m in sys.modules.items() if n != "framework.com.lives"})


def test_what_was_made_from_these_sources_is_used(tmp_path: Path) -> None:
    assert compiled.use(made(tmp_path)) == ""
    spec = sys.meta_path[0].find_spec("framework.com.lives", None)
    assert spec is not None and spec.origin is not None and Path(spec.origin).parent == tmp_path
    assert sys.meta_path[0].find_spec("framework.com.core", None) is None  # the others come from where they always do


def test_what_was_made_from_another_source_is_not(tmp_path: Path) -> None:
    here = made(tmp_path)
    (here / "made_from.json").write_text(json.dumps({"com/lives.py": "0" * 64}))
    before = list(sys.meta_path)
    assert "framework/com/lives.py has changed" in compiled.use(here)
    assert sys.meta_path == before


def test_nor_what_has_no_source_any_more(tmp_path: Path) -> None:
    here = made(tmp_path)
    (here / "made_from.json").write_text(json.dumps({"com/nobody.py": "0" * 64}))
    assert "framework/com/nobody.py has changed" in compiled.use(here)


def test_nor_what_is_for_another_python(tmp_path: Path) -> None:
    here = made(tmp_path)
    (here / f"framework.com.lives{EXTENSION_SUFFIXES[0]}").rename(here / "framework.com.lives.cpython-27-pdp11.so")
    assert "not there for this Python" in compiled.use(here)


def test_nor_beside_a_source_that_is_imported_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "framework.com.lives", compiled)
    assert "imported already" in compiled.use(made(tmp_path))


def test_without_any_the_sources_are_used(tmp_path: Path) -> None:
    assert compiled.use(tmp_path) == "there are none"


def test_who_wants_the_sources_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBO_PURE", "1")
    assert compiled.use(made(tmp_path)) == "OBO_PURE is set"


def test_a_node_asks_before_anything_of_the_com_layer_is_imported() -> None:
    """Else ``use`` would say that it is too late."""
    look = (
        "import sys; sys.argv = ['obo', 'serve']\n"
        "from framework import compiled\n"
        "def use(): print([n for n in sys.modules if n.startswith('framework.com.')])\n"
        "compiled.use = use\n"
        "import framework.cli.commands\n"
    )
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_what_is_compiled_is_the_com_layer_and_the_way_of_a_call() -> None:
    from framework.cli.compile import HOME, MODULES

    assert {"framework/com/core.py", "framework/com/order.py", "framework/orb/sessions.py"} <= set(MODULES)
    assert all((HOME / module).is_file() for module in MODULES)


def test_who_inherits_from_what_is_compiled_is_compiled_as_well() -> None:
    """A class of Python cannot inherit from one that is machine code: the node would not even start."""
    from framework.cli.compile import HOME, MODULES

    rooms = [HOME / "framework" / room for room in ("com", "orb", "net", "trace")]  # those that obo serve imports
    trees = {p: ast.parse(p.read_text()) for room in rooms for p in room.rglob("*.py")}
    classes = {p: [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)] for p, tree in trees.items()}
    made = {HOME / m for m in MODULES}
    native = {f"{p.stem}.{c.name}" for p in made for c in classes[p] if not _is_data(c)}
    for path in classes.keys() - made:
        where = {a.name: n.module.rpartition(".")[2] for n in ast.walk(trees[path]) if _imports(n) for a in n.names}
        bases = {f"{where.get(b.id)}.{b.id}" for c in classes[path] for b in c.bases if isinstance(b, ast.Name)}
        assert not bases & native, f"{path}: {bases & native}"


def test_what_inherits_from_others_and_waits_is_not_compiled() -> None:
    """Coroutines of a class that is not machine code itself, because its base is gRPC's, have crashed the process."""
    from framework.cli.compile import HOME, MODULES

    trees = [ast.parse((HOME / m).read_text()) for m in MODULES]
    classes = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    names = {c.name for c in classes}
    for cls in classes:
        strange = [ast.unparse(b) for b in cls.bases if ast.unparse(b) not in {*names, "Protocol", "NamedTuple"}]
        waits = [n.name for n in cls.body if isinstance(n, ast.AsyncFunctionDef)]
        assert not (strange and waits), f"{cls.name}({strange}): {waits}"


def _is_data(cls: ast.ClassDef) -> bool:
    names = {ast.unparse(b) for b in cls.bases}
    return bool(names & {"msgspec.Struct", "NamedTuple", "Protocol"})


def _imports(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module is not None
