"""docs/testing.md shows what works: its examples are run as a user's test file."""

import re
from pathlib import Path

from framework.testing import Cluster
from tests.cluster.test_plugin import run

TEXT = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()


def test_the_examples_of_the_guide(tmp_path):
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    (tmp_path / "test_guide.py").write_text(code)
    said = run("test_guide.py", cwd=tmp_path)
    assert f"{code.count('def test_')} passed" in said, said


def test_what_the_guide_names_is_there():
    for name in set(re.findall(r"`c\.(\w+)\(", TEXT)):
        assert callable(getattr(Cluster, name)), name
