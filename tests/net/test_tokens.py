"""The file of tokens: digests only, and what each mistake in it says."""

import stat

import pytest

from framework.errors import BadRequest
from framework.net.tokens import ROLES, Tokens, add, digest, parse, read


def test_a_token_is_found_by_its_digest(tmp_path):
    file = tmp_path / "tokens.toml"
    made = {role: add(file, f"t-{role}", role) for role in ROLES}
    assert len(set(made.values())) == 3
    for token in made.values():
        assert token not in file.read_text()
    tokens = Tokens(file)
    for role, token in made.items():
        known = tokens.find(token)
        assert known is not None and (known.name, known.role, known.digest) == (f"t-{role}", role, digest(token))
    for wrong in ("", "obo_", made["call"][:-1], made["call"] + "x", digest(made["call"])):
        assert tokens.find(wrong) is None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[ann", "tokens.toml"),
        ("ann = 1", "object"),
        ('[ann]\nrole = "call"', "sha256"),
        (f'[ann]\nrole = "boss"\nsha256 = "{"0" * 64}"', "boss"),
        ('[ann]\nrole = "call"\nsha256 = "secret"', r"\[ann\] sha256: no digest"),
        (f'["a.b"]\nrole = "call"\nsha256 = "{"0" * 64}"', "token name 'a.b'"),
        (f'[ann]\nrole = "call"\nsha256 = "{"0" * 64}"\ncolour = 1', "colour"),
    ],
)
def test_mistakes_are_named(tmp_path, text, fault):
    file = tmp_path / "tokens.toml"
    file.write_text(text)
    with pytest.raises(BadRequest, match=fault) as caught:
        read(file)
    assert "tokens.toml" in str(caught.value)


def test_a_name_is_given_once(tmp_path):
    file = tmp_path / "tokens.toml"
    add(file, "ann", "call")
    with pytest.raises(BadRequest, match="a token named ann already"):
        add(file, "ann", "admin")
    with pytest.raises(BadRequest, match="read-only, call, admin"):
        add(file, "bob", "boss")
    assert [known.name for known in parse(file.read_text())] == ["ann"]
