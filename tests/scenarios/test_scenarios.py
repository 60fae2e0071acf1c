"""Golden conversations: each file of data/ is a script and the exact exchange it causes (see script.py).

``pytest tests/scenarios --rewrite`` writes what happens now into the files: read the difference before it is kept.
"""

from pathlib import Path

import pytest

from tests.scenarios.script import Script, parse, write

FILES = sorted((Path(__file__).parent / "data").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    script = Script()
    played = write(script.play(parse(text)))
    if request.config.getoption("--rewrite", default=False):
        path.write_text(played)
    else:
        assert played == text
    script.stage.watch = lambda what, node, detail: None
    assert script.stage.finish().violations == []


def test_a_scenario_is_written_as_it_is_read() -> None:
    assert len(FILES) >= 17
    for path in FILES:
        text = path.read_text()
        assert write(parse(text)) == text, path.name
