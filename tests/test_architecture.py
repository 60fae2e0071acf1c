"""The four rules of docs/architecture.md, read off the source: style is a test.

1. ``com/`` and ``declare/`` are pure: no asyncio, grpc, os, random, threading, time, logging, not even through a
   module of the framework that they import.
2. Imports go down only; ``objects/`` and ``examples/`` see only what ``framework/__init__.py`` offers. The rooms and
   their levels are in LEVELS, ``load`` (``obo load``) among them.
3. The oracle never calls the rules it judges.
4. One word, one meaning; every module and every long public function explains itself.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import framework
from framework.cli.commands import COMMANDS

ROOT = Path(__file__).parent.parent
CODE = sorted(p for room in ("framework", "objects", "examples") for p in (ROOT / room).rglob("*.py"))
FRAMEWORK = sorted((ROOT / "framework").rglob("*.py"))
IMPURE = {"asyncio", "grpc", "os", "random", "threading", "time", "logging"}
BY_NAME = {"__import__", "import_module", "exec", "eval", "open", "input"}  # hide what they import, or read the world

#: A room may import itself and those below it. Two rooms of one level do not see each other. ``load`` (obo load, which
#: drives a cluster) stands beside ``bench``; what both need is in ``testing``.
LEVELS: dict[str, int] = {
    "errors": 0,
    "version": 0,
    "compiled": 0,
    "files": 0,
    "interrupt": 0,
    "ids": 1,
    "footprint": 1,
    "com": 2,
    "declare": 2,
    "store": 2,
    "trace": 3,
    "net": 4,
    "orb": 5,
    "sim": 5,
    "": 6,  # framework/__init__.py: public names
    "analytics": 7,
    "testing": 7,
    "bench": 8,
    "load": 8,
    "cli": 9,
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(p): p for p in CODE}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path, top_level: bool = False) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of each import; ``from a import b`` counts as ``a.b`` where that is a module of ours.

    Relative imports are not used here and would hide where they go: they come out as '.'."""
    nodes = _at_the_top(tree_of(path)) if top_level else ast.walk(tree_of(path))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, "."
                continue
            assert node.module is not None
            inner = [f"{node.module}.{a.name}" for a in node.names]
            found = [n for n in inner if n in MODULES]
            yield from ((node.lineno, n) for n in found)
            if len(found) < len(inner):
                yield node.lineno, node.module


def _at_the_top(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs when the module is imported: no function bodies, no ``if TYPE_CHECKING``."""
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
            continue
        todo += ast.iter_child_nodes(node)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def in_room(*rooms: str) -> list[Path]:
    return [p for m, p in MODULES.items() if m.startswith("framework") and room(m) in rooms]


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in ast.walk(tree_of(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_commands_write_files_whole_or_not_at_all() -> None:
    """Ctrl-C in the midst of ``write_text`` leaves half a file in place of that which was there."""
    for path in in_room("cli"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("write_text", "write_bytes"), f"{path}:{node.lineno}: use framework.files.put"


# rule 1


def reached(start: str) -> set[str]:
    """The modules of the framework that this one imports, itself or through others."""
    seen, todo = set(), [start]
    while todo:
        module = todo.pop()
        if module not in seen and module in MODULES:
            seen.add(module)
            todo += [name for _, name in imports(MODULES[module]) if name.startswith("framework")]
    return seen


@pytest.mark.parametrize("path", in_room("com", "declare"), ids=lambda p: str(p.relative_to(ROOT)))
def test_com_and_declare_are_pure(path: Path) -> None:
    """Rule 1: time and chance arrive as arguments."""
    for module in sorted(reached(module_name(path))):
        for line, name in imports(MODULES[module]):
            assert name.split(".")[0] not in IMPURE, f"{module}:{line} imports {name}; {path.name} must be pure"


@pytest.mark.parametrize(
    "path", in_room("com", "declare", "ids", "errors", "footprint"), ids=lambda p: str(p.relative_to(ROOT))
)
def test_nothing_pure_imports_by_name(path: Path) -> None:
    """Rule 1 cannot be judged where an import hides what it imports."""
    for line, name in imports(path):
        assert name.split(".")[0] != "importlib", f"{path}:{line} imports {name}"
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Name):
            assert node.id not in BY_NAME, f"{path}:{node.lineno} uses {node.id}"


def test_pure_modules_read_nothing_of_the_machine_through_sys() -> None:
    """Rule 1 again: ``sys`` is imported for ``intern`` alone."""
    for path in in_room("com", "declare", "ids", "errors", "footprint"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sys":
                assert node.attr == "intern", f"{path}:{node.lineno} uses sys.{node.attr}"


# rule 2


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("framework")])
def test_imports_go_down_only(module: str) -> None:
    """Rule 2."""
    assert room(module) in LEVELS, f"{module} is in no room of docs/architecture.md"
    mine = LEVELS[room(module)]
    for line, name in imports(MODULES[module]):
        assert name != ".", f"{module}:{line} has a relative import"
        if name.split(".")[0] != "framework" or room(name) == room(module):
            continue
        assert LEVELS[room(name)] < mine, f"{module}:{line} imports {name}, which is not below it"


def test_the_page_has_every_room_at_its_level() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    told = {name: int(level) for name, level in re.findall(r"^\| `([\w/.]+)` \| (\d) \|", page, re.MULTILINE)}
    assert told == {name or "framework/__init__.py": level for name, level in LEVELS.items()}


@pytest.mark.parametrize("room_name", ["com", "orb"])
def test_the_page_names_every_module_of_the_two_large_rooms(room_name: str) -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    part = page[page.index(f"### Inside of `{room_name}`") :]
    told = set(re.findall(r"`(\w+)/?`", part[: part.index("\n## " if room_name == "orb" else "\n### ", 5)]))
    here = {p.stem if p.is_file() else p.name for p in (ROOT / "framework" / room_name).iterdir()}
    assert here - {"__init__", "__pycache__"} <= told


@pytest.mark.parametrize("path", [p for p in CODE if p not in FRAMEWORK], ids=lambda p: str(p.relative_to(ROOT)))
def test_objects_and_examples_see_only_the_public_names(path: Path) -> None:
    """Rule 2."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "framework":
            assert node.module == "framework", f"{path}:{node.lineno} imports from {node.module}"
            for alias in node.names:
                assert alias.name in framework.__all__, f"{path}:{node.lineno}: {alias.name} is not public"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith("framework."), f"{path}:{node.lineno} imports {alias.name}"


def test_the_core_needs_msgspec_and_the_standard_library_alone() -> None:
    """Rule 2 downwards of the framework: what com, declare, store, trace and the ids import from outside."""
    for path in in_room("com", "declare", "store", "trace", "ids", "errors", "footprint"):
        for line, name in imports(path):
            top = name.split(".")[0]
            assert top in {"framework", "msgspec"} or top in sys.stdlib_module_names, f"{path}:{line} imports {name}"


@pytest.mark.parametrize(("heavy", "rooms"), [("pyspark", {"analytics"}), ("grpc", {"net", "orb", "bench"})])
def test_only_its_room_imports(heavy: str, rooms: set[str]) -> None:
    """Rule 2: analytics is the only importer of pyspark, net and orb of gRPC; bench compares with it."""
    for module, path in MODULES.items():
        for line, name in imports(path):
            if name.split(".")[0] == heavy:
                assert room(module) in rooms, f"{module}:{line} imports {name}"


def test_commands_start_without_what_is_heavy() -> None:
    """framework.cli.commands imports every command for its help: no plots, no Spark, no test tools at module level of
    anything that comes along."""
    heavy = {"matplotlib", "hypothesis", "pyspark", "pyarrow", "plotly", "pandas", "numpy", "sqlalchemy", "pytest"}
    todo, seen = [m for m in MODULES if room(m) == "cli"], set()
    while todo:
        module = todo.pop()
        if module in seen or module not in MODULES:
            continue
        seen.add(module)
        for line, name in imports(MODULES[module], top_level=True):
            assert name.split(".")[0] not in heavy, f"{module}:{line} imports {name} at module level"
            todo.append(name)


STARTS = {"Popen", "subprocess.Popen", "os.fork", "os.posix_spawn", "os.system", "ProcessPoolExecutor"}
STARTS |= {"get_context", "multiprocessing.Process", "multiprocessing.get_context", "asyncio.create_subprocess_exec"}
MAY_START = {"framework.interrupt": {"subprocess.Popen"}, "framework.orb.moving.forked": {"os.fork"}}


@pytest.mark.parametrize("module", MODULES)
def test_child_processes_are_started_in_one_place(module: str) -> None:
    """By ``interrupt.start``, so that Ctrl-C does not reach them and none is left; objects and examples, which do not
    see it, give each child a process group of its own. ``subprocess.run``, of a tool that ends soon, is no matter."""
    for node in ast.walk(tree_of(MODULES[module])):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in STARTS - MAY_START.get(module, set()):
            own_group = any(word.arg == "process_group" for word in node.keywords)
            alone = own_group and not module.startswith("framework")
            assert alone, f"{module}:{node.lineno} calls {ast.unparse(node.func)}: use framework.interrupt.start"


DEADLINES = ("asyncio.timeout", "time.monotonic", "monotonic")
SUBJECT, HANG = 2.0, 60.0  # seconds: a shorter time is what a test is about, a longer one ends what hangs


def deadlines(tree: ast.AST) -> Iterator[tuple[int, float]]:
    """``asyncio.timeout(20)`` and ``time.monotonic() + 20``: line and seconds."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=func, args=[ast.Constant(value=int() | float() as seconds)]):
                if ast.unparse(func) in DEADLINES:
                    yield node.lineno, seconds
            case ast.BinOp(
                left=ast.Call(func=func, args=[]), op=ast.Add(), right=ast.Constant(value=int() | float() as seconds)
            ):
                if ast.unparse(func) in DEADLINES:
                    yield node.lineno, seconds


def test_a_deadline_in_a_test_is_for_hangs_only() -> None:
    """CONTRIBUTING.md: a minute or more, since no test passes or fails by how fast the machine is."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {seconds:g} s"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line, seconds in deadlines(ast.parse(path.read_text("utf-8")))
        if SUBJECT < seconds < HANG
    ]
    assert not found, "\n".join(found)


# rule 3


ORACLE = tuple(m for m in MODULES if m == "framework.sim.verdict" or m.startswith("framework.sim.oracle"))


def test_the_oracle_knows_nothing_of_the_rules_it_judges() -> None:
    """Rule 3: it may read traces and the data type of footprints, nothing else of the framework, nor through others."""
    data = {"framework.footprint", "framework.ids", "framework.errors", "framework.trace", *ORACLE}
    data |= {"framework.trace.files", "framework.trace.record"}
    found = reached("framework.sim.oracle")
    assert found >= set(ORACLE)
    assert found <= data, f"the oracle reaches {sorted(found - data)}"


@pytest.mark.parametrize("module", ORACLE)
def test_the_oracle_judges_conflict_by_itself(module: str) -> None:
    """Rule 3: of footprints it takes the data type alone, not the relation that the com layer uses."""
    for node in ast.walk(tree_of(MODULES[module])):
        if isinstance(node, ast.ImportFrom) and node.module == "framework.footprint":
            assert {alias.name for alias in node.names} <= {"Footprint"}, f"{module}:{node.lineno}"
        assert not isinstance(node, ast.Import) or not any("framework" in a.name for a in node.names)


# rule 4, and what keeps the code readable


def test_no_module_is_named_for_having_no_meaning() -> None:
    for path in CODE:
        assert path.stem not in {"utils", "util", "helpers", "helper", "misc", "common", "tools"}, path


@pytest.mark.parametrize("path", [p for p in CODE if p.stat().st_size], ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(tree_of(path)), f"{path} has no docstring"


@pytest.mark.parametrize("path", in_room("com", "sim"), ids=lambda p: str(p.relative_to(ROOT)))
def test_what_is_public_is_explained_or_short(path: Path) -> None:
    """Classes that fill their module are explained by the module; functions by themselves, unless they are short."""
    for f in functions(path):
        assert f.end_lineno is not None
        lines = f.end_lineno - f.lineno + 1
        fine = f.name.startswith("_") or lines <= 25 or ast.get_docstring(f)
        assert fine, f"{path}:{f.lineno} {f.name} ({lines} lines) has no docstring"


def test_only_commands_print() -> None:
    for path in CODE:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                where = path.relative_to(ROOT).parts
                assert where[:2] == ("framework", "cli") or where[0] == "examples", f"{path}:{node.lineno} prints"


def test_no_window_reaches_to_the_last_row() -> None:
    """Of such a frame Spark looks at all rows again for each row. Order the other way round instead."""
    for path in (ROOT / "framework/analytics").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "unboundedFollowing" not in text and "UNBOUNDED FOLLOWING" not in text.upper(), path


def test_what_threads_decode_is_known_before_they_do() -> None:
    """msgspec crashes the process if threads decode a type for the first time at once: decoders are made at import."""
    makes = re.compile(r"msgpack\.decode\([^)]*type=")
    assert not [p for p in FRAMEWORK if makes.search(p.read_text())]


def test_no_pickle_ever() -> None:
    for path in [*CODE, *(ROOT / "tests").rglob("*.py")]:
        for line, name in imports(path):
            assert name.split(".")[0] not in {"pickle", "cPickle", "dill", "marshal", "shelve"}, f"{path}:{line}"


def test_no_path_of_one_machine() -> None:
    absolute = re.compile(r"[\"'= (`](/(?:home|root|tmp|work|Users|mnt|opt|var)/\w[^\s\"'`]*)")
    texts = [*CODE, *(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "Makefile", ROOT / "pyproject.toml"]
    for path in texts:
        found = absolute.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path} names {found and found[1]}"


# commands and how they are called


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_module_that_explains_itself(command: str) -> None:
    module = import_module(f"framework.cli.{command.replace('-', '_')}")
    assert module.__doc__, f"{module.__name__} has no docstring"
    assert hasattr(module, "app") or module.run.__doc__, f"obo {command} --help has no text"


def test_ci_calls_the_checks_and_then_the_test_command_of_the_readme() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
    calls = re.findall(r"^make ([a-z0-9-]+)", (ROOT / ".ci/run").read_text(), re.M)
    assert calls == ["check", "test"]
    named = re.findall(r"^\s*(?:\$ )?make ([a-z0-9-]+)", (ROOT / "README.md").read_text(), re.M)
    assert set(calls) <= set(named), "the README says how"
    assert set(named) <= targets, f"README names make {', '.join(sorted(set(named) - targets))}: no such target"


def test_what_make_calls_are_commands() -> None:
    called = re.findall(r"/obo ([a-z0-9-]+)", (ROOT / "Makefile").read_text())
    assert called
    assert set(called) <= set(COMMANDS)
