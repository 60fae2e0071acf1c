"""tools/setup.sh and the stamps of the Makefile: which Python is taken, what is said where none will do, and that an
install that failed is done again. The interpreters are scripts that answer as each kind of Python does."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SETUP = ROOT / "tools" / "setup.sh"
TOOLS = (
    "awk",
    "cat",
    "chmod",
    "cut",
    "grep",
    "head",
    "ls",
    "make",
    "mkdir",
    "mktemp",
    "mv",
    "cp",
    "rm",
    "rmdir",
    "sed",
    "sh",
    "sort",
    "tail",
    "touch",
)

#: Writes down how it was called; makes environments, and fails to install while the file "broken" is there. It brings a
#: wheel of pip if the file "wheel" is there. An environment has pip when that is unpacked, or when venv installs it.
PYTHON = """#!/bin/sh
echo "$*" | head -n 1 >>"{home}/calls"
env=$(cd "${{0%/*}}/.." && pwd)
case "$1 $2" in
"-m venv")
    for to; do :; done
    mkdir -p "$to/bin" "$to/lib" && touch "$to/pyvenv.cfg" && cp "$0" "$to/bin/python"
    [ "$4" = --without-pip ] || touch "$to/lib/pip" ;;
"-m zipfile") [ ! -e "{home}/unpacks_nothing" ] && mkdir "$5" && touch "$5/pip" ;;
"-m ensurepip") touch "$env/lib/pip" ;;
"-m pip")
    [ -e "$env/lib/pip" ] || exit 1
    if [ "$3" = install ] && [ -e "{home}/broken" ]; then cat "{home}/broken" >&2; exit 1; fi ;;
"-c "*ensurepip,*) if [ -e "{home}/wheel" ]; then echo "{home}/wheel"; fi ;;
"-c "*purelib*) echo "$env/lib" ;;
"-c "*) echo "{version} {missing} $0" ;;
esac
"""
#: As many versions of pip write it.
SCRIPT = """#!/env/bin/python
# -*- coding: utf-8 -*-
import re
import sys
from framework.cli.main import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""
SHIM = "#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n"


class Machine:
    """A PATH with the tools that make needs and the interpreters of a test."""

    def __init__(self, home):
        self.home = home
        self.path = home / "bin"
        self.path.mkdir()
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool))

    def has(self, name, version="", missing="-"):
        """Return the path of an interpreter; without a version it does not run."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PYTHON.format(home=self.home, version=version, missing=missing) if version else SHIM)
        path.chmod(0o755)
        return str(path)

    def setup(self, *words, **environment):
        return self._run("sh", str(SETUP), *words, **environment)

    def make(self, *words):
        return self._run("make", f"VENV={self.home}/env", *words)

    def _run(self, *words, **environment):
        variables = {"PATH": str(self.path), "HOME": str(self.home), **environment}
        return subprocess.run(words, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300)

    def calls(self, word):
        path = self.home / "calls"
        return [c for c in path.read_text().splitlines() if word in c] if path.exists() else []


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        ({"python3.11": "3.11.2"}, "python3.11"),
        ({"python3": "3.12.4"}, "python3"),
        ({"python3.11": "3.11.2", "python3.12": "3.12.4", "python3.13": "3.13.0"}, "python3.13"),
        ({"python3.14": "3.14.1", "python3.12": "3.12.4"}, "python3.12"),  # wheels for the newest come late
        ({"python3.14": "3.14.1", "python3": "3.9.2"}, "python3.14"),
        ({"python3.13": "", "python3.12": "", "python3.11": "3.11.2"}, "python3.11"),  # shims
        ({"python3": "3.10.1", "python": "3.12.0"}, "python"),
    ],
)
def test_the_newest_that_runs_is_taken(machine, there, taken):
    paths = {name: machine.has(name, version) for name, version in there.items()}
    assert machine.setup("find").stdout.strip() == paths[taken]


def test_one_without_all_modules_is_passed_over(machine):
    machine.has("python3.13", "3.13.0", "ensurepip")
    whole = machine.has("python3.11", "3.11.2")
    assert machine.setup("find").stdout.strip() == whole


def test_versions_of_pyenv_are_found_behind_its_shims(machine):
    machine.has("python3.12")
    behind = machine.has("../.pyenv/versions/3.12.1/bin/python3", "3.12.1")
    assert Path(machine.setup("find").stdout.strip()).resolve() == Path(behind).resolve()


def test_PYTHON_names_the_only_one(machine):  # noqa: N802
    machine.has("python3.13", "3.13.0")
    named = machine.has("mine", "3.11.9")
    assert machine.setup("find", PYTHON=named).stdout.strip() == named
    told = machine.setup("find", PYTHON="nowhere")
    assert told.returncode == 1 and "nowhere does not run" in told.stderr and not told.stdout


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({}, ["Python 3.11 or newer", "apt install python3 python3-venv", "PYTHON="]),
        ({"python3": ("3.9.2", "-")}, ["python3 is Python 3.9.2: too old"]),
        ({"python3.13": ("", "")}, ["python3.13 does not run: pyenv: command not found"]),
        ({"python3": ("3.12.3", "ensurepip")}, ["without ensurepip", "apt install python3.12-venv"]),
        ({"python3": ("3.12.3", "venv,ensurepip")}, ["without venv,ensurepip", "apt install python3.12-venv"]),
        ({"python3": ("3.12.3", "sqlite3")}, ["without sqlite3", "libsqlite3-dev"]),
    ],
)
def test_it_says_what_is_missing_and_what_to_install(machine, there, said):
    for name, (version, missing) in there.items():
        machine.has(name, version, missing)
    told = machine.make("setup")
    assert told.returncode and not (machine.home / "env").exists()
    for words in said:
        assert words in told.stderr


def test_all_names_each_minor_version_once(machine):
    for name, version in (
        ("python3.13", "3.13.0"),
        ("python3.11", "3.11.2"),
        ("python3", "3.11.2"),
        ("python", "2.7.1"),
    ):
        machine.has(name, version)
    assert machine.setup("all").stdout.split() == [
        *("3.11", str(machine.path / "python3.11")),
        *("3.13", str(machine.path / "python3.13")),
    ]


def test_a_part_is_installed_once(machine):
    machine.has("python3", "3.12.1")
    stamp = str(machine.home / "env/.ready-core")
    for _ in range(2):
        made = machine.make(stamp)
        assert made.returncode == 0, made.stderr
    assert len(machine.calls("pip install")) == len(machine.calls("venv")) == 1


def test_an_install_that_failed_is_done_again_in_the_same_environment(machine):
    machine.has("python3", "3.12.1")
    stamp = machine.home / "env/.ready-plot"
    (machine.home / "broken").touch()
    failed = machine.make(str(stamp))
    assert failed.returncode and not stamp.exists()
    assert "The part 'plot' could not be installed with Python 3.12.1" in failed.stderr
    (machine.home / "broken").unlink()
    assert machine.make(str(stamp)).returncode == 0 and stamp.exists()
    assert len(machine.calls("venv")) == 1


@pytest.mark.parametrize("wheel", [False, True])
def test_an_environment_gets_pip_with_and_without_a_wheel_of_it(machine, wheel):
    machine.has("python3", "3.12.1")
    if wheel:
        (machine.home / "wheel").touch()
    made = machine.make(f"{machine.home}/env/.ready-core")
    assert made.returncode == 0, made.stderr
    assert len(machine.calls("--without-pip")) == len(machine.calls("zipfile")) == wheel
    assert (machine.home / "env/lib/pip").exists() and not (machine.home / "env/lib.part").exists()
    assert (machine.home / "env/bin/pip").exists() == wheel


def test_an_environment_that_was_left_before_it_had_pip_gets_it(machine):
    machine.has("python3", "3.12.1")
    (machine.home / "wheel").touch()
    (machine.home / "unpacks_nothing").touch()
    stamp = f"{machine.home}/env/.ready-core"
    assert machine.make(stamp).returncode
    assert machine.make(stamp).returncode == 0
    assert machine.calls("ensurepip") and len(machine.calls("pip install")) == 1


@pytest.mark.parametrize("works", [True, False])
def test_uv_installs_where_it_is_and_else_pip_does(machine, works):
    machine.has("python3", "3.12.1")
    uv = machine.path / "uv"
    uv.write_text(f'#!/bin/sh\necho "uv $*" >>"{machine.home}/calls"\n{"true" if works else "exit 2"}\n')
    uv.chmod(0o755)
    made = machine.make(f"{machine.home}/env/.ready-core")
    assert made.returncode == 0, made.stderr
    assert len(machine.calls("uv pip install")) == 1
    assert len(machine.calls("-m pip install")) == (not works)
    assert ("trying pip" in made.stderr) == (not works)


@pytest.mark.parametrize(
    ("part", "broken", "said", "unsaid"),
    [
        ("core", "NewConnectionError('...: Connection refused')", ["network", "PIP_INDEX_URL"], ["wheel", "doctor"]),
        ("core", "ERROR: No matching distribution found for setuptools>=77", ["network"], ["wheel"]),
        ("plot", "ERROR: No matching distribution found for matplotlib>=3.8", ["no matplotlib", "doctor"], ["network"]),
        ("core", "error: No space left on device", ["disk is full"], ["network", "wheel"]),
    ],
)
def test_it_says_why_an_install_failed_and_what_to_do(machine, part, broken, said, unsaid):
    machine.has("python3", "3.12.1")
    (machine.home / "broken").write_text(f"{broken}\n")
    told = machine.make(f"{machine.home}/env/.ready-{part}").stderr
    assert broken in told
    assert all(words in told for words in said) and not any(words in told for words in unsaid), told


def test_a_PYTHON_that_will_not_do_is_named_with_one_that_will(machine):  # noqa: N802
    good = machine.has("python3", "3.12.1")
    told = machine.make("PYTHON=python3.99", "setup").stderr
    assert "PYTHON=python3.99 will not do" in told and f"make PYTHON={good}" in told
    assert machine.make("setup").returncode == 0
    again = machine.make("PYTHON=python3.99", "setup")
    assert again.returncode and "PYTHON=python3.99 does not run: leave it out" in again.stderr


def test_nothing_is_imported_by_the_script_before_the_framework(machine):
    machine.has("python3", "3.12.1")
    script = machine.home / "env/bin/obo"
    assert machine.make(f"{machine.home}/env/.ready-core").returncode == 0
    script.write_text(SCRIPT)
    assert machine.make(f"{machine.home}/env/.ready-plot").returncode == 0
    assert script.read_text().splitlines() == [
        line for line in SCRIPT.splitlines() if "re" not in line.split()[:2] and "re.sub" not in line
    ]
    assert script.stat().st_mode & 0o111


def test_what_the_tests_need_includes_every_part(machine):
    machine.has("python3", "3.12.1")
    env = machine.home / "env"
    assert machine.make(f"{env}/.ready").returncode == 0
    assert machine.make(f"{env}/.ready-core", f"{env}/.ready-plot", f"{env}/.ready-bench").returncode == 0
    assert len(machine.calls("pip install")) == 1


def test_an_environment_that_was_interrupted_is_made_anew(machine):
    machine.has("python3", "3.12.1")
    (machine.home / "env/bin").mkdir(parents=True)
    (machine.home / "env/pyvenv.cfg").touch()
    assert machine.make(f"{machine.home}/env/.ready-core").returncode == 0
    assert len(machine.calls("venv --clear")) == 1


def test_a_directory_of_something_else_is_left_alone(machine):
    machine.has("python3", "3.12.1")
    mine = machine.home / "env" / "letter.txt"
    mine.parent.mkdir()
    mine.touch()
    told = machine.make(f"{machine.home}/env/.ready-core")
    assert told.returncode and mine.exists() and "is no Python environment" in told.stderr


def test_another_PYTHON_than_that_of_the_environment_is_told(machine):  # noqa: N802
    machine.has("python3", "3.12.1")
    other = machine.has("python3.11", "3.11.2")
    stamp = f"{machine.home}/env/.ready-core"
    assert machine.make(f"PYTHON={machine.path}/python3", stamp).returncode == 0
    told = machine.make(f"PYTHON={other}", stamp)
    assert told.returncode and "has Python 3.12.1" in told.stderr and "make clean" in told.stderr
    assert machine.make(f"PYTHON={other}", "help").returncode == 0


def test_the_parts_of_the_makefile_are_the_extras(machine):
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    line = next(x for x in (ROOT / "Makefile").read_text().splitlines() if x.startswith("PARTS"))
    assert {*line.split()[2:]} == {*extras, "core"} - {"test"}
