"""Each citation of a page of docs/, and of a paper, names what exists; and what stands in two places is the same.

A section sign belongs to the page or paper that was named last in the same paragraph: ``protocol.md §4.1, §5.2``,
``P3 §4.3``. The sections of the papers stand in the last section of docs/protocol.md.
"""

import re
from ast import get_docstring, parse
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "protocol.md"
ROOMS = ("framework", "objects", "examples", "tests", "docs", "proto", "tools")
KINDS = {".py", ".md", ".txt", ".proto", ".sh", ".toml"}
SELF = "protocol.md"

_NAMED = re.compile(r"\bP[0-3]\b|protocol\.md|(?P<signs>§\s?\d[\d.]*(?:\s?[-–]\s?\d[\d.]*)*)")
_ITEM = re.compile(r"\b(P[0-3]),? (Def|Table|Fig|Theorem)s?\.? (\d+)(?:(?:[-–]| and | to )(\d+))?")
_OF_PAPER = re.compile(r"\bP[0-3] (?:Def\. [\d–-]+, )?§[\d.]+(?:(?:, | and )§[\d.]+)*")


def sections(page: str) -> set[str]:
    return set(re.findall(r"^##+ (\d+(?:\.\d+)*)\b", page, re.MULTILINE))


def papers(page: str) -> tuple[dict[str, set[str]], dict[str, dict[str, int]]]:
    """The sections of each paper, and how many numbered items of each kind it has."""
    parts: dict[str, set[str]] = {}
    items: dict[str, dict[str, int]] = {}
    for name, listed, numbered in re.findall(r"^\| (P\d) \| (§1, [^|]*) \| ([^|]*) \|$", page, re.MULTILINE):
        parts[name] = set(re.findall(r"§([\d.]+)", listed))
        items[name] = {kind: int(last) for kind, last in re.findall(r"(Def|Table|Fig|Theorem)s?\.? 1–(\d+)", numbered)}
    return parts, items


def cited(text: str, default: str = "") -> Iterator[tuple[str, str]]:
    """(page or paper, section) of each section sign; "" where the paragraph names none."""
    for paragraph in re.split(r"\n\s*\n", text):
        source = default
        for found in _NAMED.finditer(paragraph):
            if found["signs"] is None:
                source = found[0]
                continue
            for number in re.findall(r"\d+(?:\.\d+)*", found[0]):
                yield source, number


def files() -> list[Path]:
    found = [p for room in ROOMS for p in (ROOT / room).rglob("*") if p.suffix in KINDS and "wire" not in p.parts]
    return sorted([*found, *ROOT.glob("*.md")])


def test_each_citation_names_a_section_that_exists() -> None:
    page = PAGE.read_text(encoding="utf-8")
    known, _ = papers(page)
    known[SELF] = sections(page)
    wrong = []
    for path in files():
        if path in (PAGE, Path(__file__)):
            continue
        for source, number in cited(path.read_text(encoding="utf-8")):
            if number.rstrip(".") not in known.get(source, ()):
                wrong.append(f"{path.relative_to(ROOT)}: {source or 'nothing named'} §{number}")
    assert not wrong, "no such section:\n" + "\n".join(wrong)


def test_the_page_cites_itself_and_the_papers_right() -> None:
    page = PAGE.read_text(encoding="utf-8")
    known, _ = papers(page)
    rest = page[: page.index("Their sections, as citations name them")]
    for found in _OF_PAPER.findall(rest):
        for number in re.findall(r"§([\d.]*\d)", found):
            assert number in known[found[:2]], f"{found}: no §{number} in {found[:2]}"
    for number in re.findall(r"§(\d+(?:\.\d+)*)", _OF_PAPER.sub("", rest)):
        assert number in sections(page), f"docs/protocol.md cites its own §{number}, which is not there"


def test_each_numbered_item_of_a_paper_that_is_cited_exists() -> None:
    _, items = papers(PAGE.read_text(encoding="utf-8"))
    wrong = []
    for path in files():
        for name, kind, first, last in _ITEM.findall(path.read_text(encoding="utf-8")):
            if not 1 <= int(first) <= int(last or first) <= items[name].get(kind, 0):
                wrong.append(f"{path.relative_to(ROOT)}: {name} {kind} {first}{'-' + last if last else ''}")
    assert not wrong, "no such item:\n" + "\n".join(wrong)


def test_each_page_and_heading_that_code_names_exists() -> None:
    wrong = []
    for path in files():
        for name, heading in re.findall(r"docs/([\w-]+\.md)(?:, \"([^\"]+)\")?", path.read_text(encoding="utf-8")):
            page = ROOT / "docs" / name
            if not page.is_file() or (heading and f"## {heading}\n" not in page.read_text(encoding="utf-8")):
                wrong.append(f"{path.relative_to(ROOT)}: docs/{name} {heading}")
    assert not wrong, "no such page or heading:\n" + "\n".join(wrong)


def plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def test_the_contract_of_a_driver_is_the_same_in_both_places() -> None:
    said = get_docstring(parse((ROOT / "framework/com/__init__.py").read_text(encoding="utf-8"))) or ""
    contract = plain(said[said.index("**Feeding**") :])
    assert contract in plain((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("as protocol.md §5.2 and §7.3 say", [("protocol.md", "5.2"), ("protocol.md", "7.3")]),
        ("(P3 §4.3-4.4, protocol.md §9.1)", [("P3", "4.3"), ("P3", "4.4"), ("protocol.md", "9.1")]),
        ("[protocol.md](protocol.md) §7.5.", [("protocol.md", "7.5")]),
        ("protocol.md\n\n§4 of what?", [("", "4")]),
    ],
)
def test_how_citations_are_read(text: str, found: list[tuple[str, str]]) -> None:
    assert [(source, number.rstrip(".")) for source, number in cited(text)] == found
