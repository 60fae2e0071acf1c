"""docs/sim.md and docs/trace.md say what is the case."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from framework.cli import sim
from framework.sim.run import run
from framework.trace.record import VERSION, Happening, Header, Placed, Record

DOCS = Path(__file__).parents[2] / "docs"
TRACE = (DOCS / "trace.md").read_text(encoding="utf-8")
SIM = (DOCS / "sim.md").read_text(encoding="utf-8")


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def test_the_example_of_own_objects_runs():
    (example,) = blocks(SIM, "python")
    exec(compile(example, "docs/sim.md", "exec"), {})


@pytest.mark.parametrize("line", [line for block in blocks(TRACE, "json") for line in block.splitlines()])
def test_example_lines_are_lines_of_a_trace(line):
    kind = Header if '"trace"' in line else Record
    assert msgspec.json.encode(msgspec.json.decode(line, type=kind)).decode() == line


def test_every_field_and_every_event_is_documented():
    for kind in (Header, Placed, Record):
        for field in kind.__struct_fields__:
            assert f"`{field}`" in TRACE, field
    for event in get_args(Happening):
        assert re.search(rf"^###.*`{event}`", TRACE, re.M), event
    assert f"is **{VERSION}**" in TRACE


def section(event):
    """What is said below the headline of an event."""
    found = re.search(rf"^### [^\n]*`{event}`.*?(?=^##)", TRACE, re.M | re.S)
    assert found is not None
    return found[0]


def test_each_event_has_the_fields_that_are_documented_for_it():
    common = {"i", "node", "at", "event", "view"}
    seen = set()
    for seed in range(12):
        for trace in run(seed).traces:
            for record in trace.records:
                for field in set(msgspec.to_builtins(record)) - common:
                    seen.add((record.event, field))
    assert len({event for event, _ in seen}) >= 9
    for event, field in seen:
        assert f"`{field}`" in section(event), (event, field)


def test_every_option_is_documented():
    from inspect import signature

    names = {"many": "seeds", "as_json": "json", "start": "from", "end": "to", "no_faults": "no-faults"}
    for parameter in signature(sim.run).parameters:
        assert f"--{names.get(parameter, parameter)}" in SIM, parameter
