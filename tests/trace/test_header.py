"""A trace whose header is not text is refused like any other damage, not with the decoder's own error."""

from pathlib import Path

import pytest

from framework.errors import BadTrace
from framework.trace.files import read


def test_a_header_that_is_no_utf8(tmp_path: Path) -> None:
    """It came out as UnicodeDecodeError: commands that read traces did not tell which file."""
    file = tmp_path / "n1.jsonl"
    file.write_bytes(b'{"version": 1, "node": "\xff"}\n')
    with pytest.raises(BadTrace) as caught:
        read(file)
    assert str(file) in str(caught.value)
