"""docs/declare.md shows what happens."""

import re
from pathlib import Path

from framework.declare import declaration
from framework.declare.build import RESERVED
from objects.bank import Bank

TEXT = (Path(__file__).parents[2] / "docs" / "declare.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_class_in_the_guide_is_that_of_the_objects():
    space: dict[str, type] = {}
    exec(BLOCKS[0], space)
    assert declaration(space["Bank"]).relation.rows == declaration(Bank).relation.rows
    assert {n: m.key for n, m in declaration(space["Bank"]).methods.items()} == {
        n: m.key for n, m in declaration(Bank).methods.items()
    }


def test_the_footprint_in_the_guide():
    transfer = declaration(Bank).method("transfer")
    assert str(transfer.footprint(transfer.bind("ann", "bob", 5))) in TEXT
    assert "submit" in RESERVED
