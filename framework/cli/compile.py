"""``obo compile``, ``make compiled``: the modules that a node spends most of its time in, as machine code by mypyc.

It needs mypy and a C compiler, and takes three minutes. Nothing depends on it: ``obo serve`` uses what was made if that
was from the sources as they are now (framework/compiled.py), and else the sources.
"""

import os
import shutil
import tempfile
from pathlib import Path

from framework import BadRequest, compiled

HOME = Path(__file__).resolve().parents[2]  # where the package framework is

#: Message types are classes of msgspec: they are fast as they are, and mypyc would take the types of their fields from
#: them, so that anything could be decoded.
NOT = {"__init__", "messages", "event", "events", "words", "view", "receipt", "handed", "telling"}
#: Where a call goes through in a node; and what inherits from a class of these: Python's own classes cannot.
ORB = (
    *("sessions", "served", "naming", "dispatch", "performance", "stage", "turn", "undo", "undoing", "life", "node"),
    *("given", "limits", "who", "recent", "state/tracker", "short", "spots", "convoys", "riding"),
    *("reading", "sampling", "durable/past", "backed/writing", "backed/resident", "backed/recalled"),
)
MODULES = [
    *sorted(f"framework/com/{p.name}" for p in (HOME / "framework/com").glob("*.py") if p.stem not in NOT),
    *(f"framework/orb/{name}.py" for name in ORB),
]


def run() -> None:
    """Make machine code of the com layer and of a call's way through a node. Needs mypy, setuptools and a C compiler.

    It takes three minutes or more. Nothing depends on it, and an edit of the sources puts them in force again.
    """
    try:
        from mypyc.build import mypycify
        from setuptools import setup
    except ImportError as error:
        raise BadRequest(f"{error.name} is not installed: pip install 'obo[compile]'") from None
    os.chdir(HOME)
    wire = [m for m in MODULES if "array_like" in (HOME / m).read_text()]
    if wire:
        raise BadRequest(f"{', '.join(wire)}: message types go into a module that is not compiled (NOT, above)")
    target = compiled.HERE
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as directory:
        modules = mypycify(MODULES, opt_level="2", debug_level="0", group_name="framework.fast", target_dir=directory)
        built = Path(directory) / "lib"
        setup(
            name="obo-compiled",
            ext_modules=modules,
            script_args=["-q", "build_ext", "--build-lib", str(built), "--build-temp", directory],
        )
        target.mkdir()
        for file in built.rglob("*.so"):
            name = ".".join(file.relative_to(built).parts)
            shutil.copy(file, target / name)
    compiled.record([HOME / m for m in MODULES])
    print(f"{len(MODULES)} modules are compiled: {target}")
