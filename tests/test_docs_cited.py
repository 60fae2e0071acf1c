"""Each page of docs/ that code, a message or another page cites is there; and the heading in it, where one is named.

Cited is what ends in ``.md`` in any text of the tree. A section sign is checked elsewhere (test_citations.py).
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("framework", "objects", "examples", "tests", "docs", "proto", "tools")
KINDS = {".py", ".md", ".txt", ".proto", ".sh", ".toml", ".yml"}
_PAGE = re.compile(r"(?<![\w./-])((?:\.\./|[\w-]+/)*[\w-]+\.md)(?:#([\w.-]+))?")
#: (docs/page.md, The heading): how a message names a section.
_HEADING = re.compile(r"\bdocs/([\w/-]+\.md), ([A-Z][\w ,?'-]+?)\)")


def texts() -> list[Path]:
    found = [p for room in ROOMS for p in (ROOT / room).rglob("*") if p.suffix in KINDS and p.is_file()]
    return sorted([*found, *ROOT.glob("*.md"), ROOT / "Makefile"])


def cited(text: str) -> Iterator[tuple[str, str]]:
    """Pages, each with the anchor that is named, or none."""
    yield from ((m[1], m[2] or "") for m in _PAGE.finditer(text))


def there(page: str, source: Path) -> Path | None:
    """A page is named from its own place, from docs/ or from the root."""
    places = (source.parent, ROOT, ROOT / "docs")
    return next((p for p in ((place / page).resolve() for place in places) if p.is_file()), None)


@cache
def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ +(.+?) *$", page.read_text(encoding="utf-8"), re.MULTILINE)


def anchor(heading: str) -> str:
    """As GitHub makes them."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def missing(text: str, source: Path) -> list[str]:
    """What is cited and is not there."""
    out = []
    for page, named in cited(text):
        found = there(page, source)
        if found is None:
            out.append(f"{page}: no such page")
        elif found is not None and named and named not in map(anchor, headings(found)):
            out.append(f"{page}#{named}: no such heading")
    joined = re.sub(r'"\s*\n\s*f?"', "", text)  # a message over several lines
    for page, heading in _HEADING.findall(joined):
        found = there(f"docs/{page}", source)
        if found is not None and heading not in headings(found):
            out.append(f"docs/{page}: no heading {heading!r}")
    return out


def test_what_is_cited_is_there() -> None:
    bad = [
        f"{path.relative_to(ROOT)}: {what}"
        for path in texts()
        if path != Path(__file__)
        for what in missing(path.read_text(encoding="utf-8"), path)
    ]
    assert bad == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("see docs/durable.md and [x](sql.md)", []),
        ("see docs/nothing.md", ["docs/nothing.md: no such page"]),
        ("[x](durable.md#what-it-means)", []),
        ("[x](durable.md#what-it-meant)", ["durable.md#what-it-meant: no such heading"]),
        ('"(docs/operations.md, A replica does not "\n    "come back)"', []),
        (
            '"(docs/operations.md, A replica does come back)"',
            ["docs/operations.md: no heading 'A replica does come back'"],
        ),
        ("https://example.org/a/b.md", []),
    ],
)
def test_what_is_missing_is_found(text: str, said: list[str]) -> None:
    assert missing(text, ROOT / "docs" / "backed.md") == said
