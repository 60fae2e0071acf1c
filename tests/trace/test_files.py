"""Trace files: what is written is read back, and every kind of damage is BadTrace with file and line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.errors import BadTrace
from framework.footprint import Footprint
from framework.sim.oracle import judge
from framework.sim.run import run
from framework.trace.check import check, load
from framework.trace.files import Trace, find, read, write
from framework.trace.record import VERSION, Header, Record, line
from tests.tiers import examples

DONE = run(5)
quick = settings(derandomize=True, deadline=None, max_examples=examples(25, 100))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{t.header.node}.jsonl" for t in DONE.traces]
    for path, trace in zip(paths, DONE.traces, strict=True):
        write(path, trace)
    return paths


def refuse(path: Path, *expected: str) -> str:
    with pytest.raises(BadTrace) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    for part in expected:
        assert part in text
    assert "\n" not in text
    return text


# what is written is read back


def test_a_run_comes_back_and_gets_the_same_verdict(files: list[Path]) -> None:
    back = [read(path) for path in files]
    assert back == DONE.traces
    assert judge(back) == DONE.verdict
    assert load(files) == DONE.traces


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
footprints = st.builds(
    Footprint,
    texts,
    st.none() | st.lists(st.tuples(texts, st.sampled_from(["r", "w"])), max_size=2).map(tuple),
    st.booleans(),
)
records = st.builds(
    Record,
    i=st.just(1),
    node=st.just("n1"),
    at=st.floats(allow_nan=False, allow_infinity=False),
    event=st.sampled_from(["send", "deliver", "end", "state", "stop"]),
    view=st.integers(-(2**60), 2**60),
    group=texts,
    no=st.integers(-1, 2**40),
    footprint=st.none() | footprints,
    parts=st.lists(st.tuples(texts, footprints), max_size=2).map(tuple),
    dests=st.lists(st.tuples(texts, st.integers(0, 9)), max_size=2).map(tuple),
    received=st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
    committed=st.booleans(),
    complete=st.booleans(),
    digest=texts,
    open=st.lists(texts, max_size=2).map(tuple),
)


@quick
@given(record=records)
def test_any_record_comes_back(record: Record, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also one with line ends, quotes or other alphabets in its texts."""
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    trace = Trace(Header(node="n1", view=1, members=("n1",), objects={}), [record])
    write(path, trace)
    assert read(path) == trace
    assert path.read_bytes().count(b"\n") == 2


def test_it_is_ordinary_json(files: list[Path]) -> None:
    lines = files[0].read_text(encoding="utf-8").splitlines()
    head, *rest = (json.loads(text) for text in lines)
    assert (head["trace"], head["version"]) == ("obo", VERSION)
    assert [r["i"] for r in rest] == list(range(1, len(rest) + 1))


def test_fields_that_an_event_does_not_have_are_left_out() -> None:
    record = Record(i=1, node="n1", at=0.5, event="stop", view=1)
    assert json.loads(line(record)) == {"i": 1, "node": "n1", "at": 0.5, "event": "stop", "view": 1}


def test_write_makes_its_directory(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "n1.jsonl", DONE.traces[0])
    assert read(tmp_path / "a" / "b" / "n1.jsonl") == DONE.traces[0]


# damage

Damage = Callable[[list[bytes]], list[bytes]]


def at(number: int, change: Callable[[bytes], bytes]) -> Damage:
    """Spoil this line (from 1)."""
    return lambda lines: [change(text) if n == number else text for n, text in enumerate(lines, 1)]


def field(name: str, value: Any) -> Callable[[bytes], bytes]:
    return lambda text: json.dumps({**json.loads(text), name: value}).encode()


def without(name: str) -> Callable[[bytes], bytes]:
    return lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != name}).encode()


DAMAGES: list[tuple[str, Damage, str, str]] = [
    ("cut in a line", at(4, lambda t: t[:20]), ":4: ", "truncated"),
    ("not JSON", at(4, lambda t: b"hello"), ":4: ", "malformed"),
    ("an empty line", at(4, lambda t: b""), ":4: ", "truncated"),
    ("no UTF-8", at(4, lambda t: t.replace(b'"', b'"\xff', 1)), ":4: ", ""),
    ("zeros", at(4, lambda t: bytes(len(t))), ":4: ", "malformed"),
    ("nested too deep", at(4, lambda t: b"[" * 100_000), ":4: ", ""),
    ("another type", at(4, lambda t: b"[1, 2]"), ":4: ", "Expected `object`"),
    ("an unknown field", at(4, field("colour", "red")), ":4: ", "unknown field `colour`"),
    ("an unknown event", at(4, field("event", "explode")), ":4: ", "explode"),
    ("a field of another type", at(4, field("view", "one")), ":4: ", "Expected `int`, got `str` - at `$.view`"),
    ("a missing field", at(4, without("event")), ":4: ", "missing required field `event`"),
    ("another node", at(4, field("node", "n77")), ":4: ", "record 3 of n77; expected 3 of n1"),
    ("another number", at(4, field("i", 9)), ":4: ", "record 9 of n1; expected 3 of n1"),
    ("a line missing", lambda lines: lines[:3] + lines[4:], ":4: ", "a line is missing, repeated or from another file"),
    ("a line twice", lambda lines: [*lines[:4], *lines[3:]], ":5: ", "a line is missing, repeated"),
    ("lines swapped", lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], ":4: ", "expected 3 of n1"),
    ("no header", lambda lines: lines[1:], ":1: ", "not a trace header"),
    ("header not JSON", at(1, lambda t: b"obo"), ":1: ", "not a trace header"),
    ("header nested too deep", at(1, lambda t: b"[" * 100_000), ":1: ", "not a trace header"),
    ("header of something else", at(1, field("trace", "strace")), ":1: ", "not a trace header"),
    ("a newer version", at(1, field("version", VERSION + 1)), ":1: ", f"trace version {VERSION + 1}; this obo reads"),
    ("a version that is none", at(1, field("version", "new")), ":1: ", "not a trace header"),
    ("no version", at(1, without("version")), ":1: ", "missing required field `version`"),
    ("no members", at(1, without("members")), ":1: ", "missing required field `members`"),
    ("objects of another type", at(1, field("objects", [])), ":1: ", "$.objects"),
]


@pytest.mark.parametrize(("damage", "where", "says"), [d[1:] for d in DAMAGES], ids=[d[0] for d in DAMAGES])
def test_damage_is_told_with_file_and_line(files: list[Path], damage: Damage, where: str, says: str) -> None:
    lines = files[0].read_bytes().split(b"\n")[:-1]
    files[0].write_bytes(b"\n".join(damage(lines)) + b"\n")
    refuse(files[0], f"{files[0]}{where}", says)


def test_a_file_that_ends_in_the_middle(files: list[Path]) -> None:
    """The node died, or still writes."""
    data = files[0].read_bytes()
    count = data.count(b"\n")
    for cut in (1, 5):
        files[0].write_bytes(data[:-cut])
        refuse(files[0], f":{count}: the last line is cut off")
    files[0].write_bytes(b"")
    refuse(files[0], "empty; a trace starts with a header line")


def test_a_file_that_is_cut_between_lines_can_be_read(files: list[Path]) -> None:
    """What a node had written when it died is a trace."""
    lines = files[0].read_bytes().split(b"\n")
    files[0].write_bytes(b"\n".join(lines[:5]) + b"\n")
    assert read(files[0]).records == DONE.traces[0].records[:4]


@settings(quick, max_examples=examples(50, 200))
@given(data=st.data())
def test_whatever_happens_to_the_bytes(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Never another error than BadTrace, and always with the file's name."""
    path = tmp_path_factory.getbasetemp() / "spoilt.jsonl"
    few = Trace(DONE.traces[0].header, DONE.traces[0].records[:5])
    write(path, few)
    good = bytearray(path.read_bytes())
    head = len(line(few.header))
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(good) - 1))
        noise = st.binary(max_size=3) if i > head + 9 else st.text('a0{}[],:"\n', max_size=3).map(str.encode)
        good[i : i + data.draw(st.integers(0, 3))] = data.draw(noise)
    path.write_bytes(good)
    try:
        trace = read(path)
        check([(path, trace)])
    except BadTrace as e:
        caught = str(e)
    else:
        caught = str(path)
    assert caught.startswith(str(path))


# which files


def test_find(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a trace")
    assert find([tmp_path]) == sorted(files)
    assert find([files[1], files[0]]) == [files[1], files[0]]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BadTrace, match=r"no trace files \(\*.jsonl\) in this directory"):
        find([empty])
    with pytest.raises(BadTrace, match="nowhere: no such file or directory"):
        find([tmp_path / "nowhere"])


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    refuse(tmp_path / "nowhere.jsonl", "No such file")
    refuse(tmp_path, "directory")


# records that do not fit together (framework.trace.check)


def change(trace: Trace, event: str, **fields: Any) -> tuple[Trace, int]:
    """Change the first record of this event. The trace, and the line that was changed."""
    records = list(trace.records)
    i = next(n for n, r in enumerate(records) if r.event == event)
    records[i] = msgspec.structs.replace(records[i], **fields)
    return Trace(trace.header, records), i + 2


ODD: list[tuple[str, dict[str, Any], str]] = [
    ("deliver", {"replica": "zz@n1"}, "no replica 'zz@n1' in the header"),
    ("deliver", {"footprint": None}, "the footprint is missing"),
    ("deliver", {"sid": "now"}, "sid 'now' is no start identifier"),
    ("deliver", {"group": "1:x"}, "group '1:x' is no group id"),
    ("deliver", {"invocation": "ann"}, "invocation 'ann' is no invocation id"),
    ("deliver", {"way": "quick"}, "way 'quick'; expected fast, slow or none"),
    ("end", {"invocation": "c1/1.²"}, "is no invocation id"),
    ("send", {"parts": ()}, "the parts name no object"),
    ("send", {"dests": ()}, "do not fit the parts"),
    ("send", {"dests": (("zz@n1", 1),)}, "destination 'zz@n1' is no replica"),
    ("send", {"no": 77}, "the group id does not consist of sid"),
    ("receive", {"group": "1:tran@n1:99"}, "did not send it before"),
    ("receive", {"received": (("zz@n1", "ok"),)}, "a response from 'zz@n1', which is no destination"),
    ("state", {"replica": ""}, "no replica ''"),
]


@pytest.mark.parametrize(("event", "fields", "says"), ODD, ids=[f"{e} {f}" for e, f, _ in ODD])
def test_records_that_do_not_fit(event: str, fields: dict[str, Any], says: str) -> None:
    n = next(i for i, t in enumerate(DONE.traces) if any(r.event == event for r in t.records))
    spoilt, number = change(DONE.traces[n], event, **fields)
    run_ = [(Path(t.header.node), spoilt if i == n else t) for i, t in enumerate(DONE.traces)]
    with pytest.raises(BadTrace) as caught:
        check(run_)
    assert str(caught.value).startswith(f"{spoilt.header.node}:{number}: {event}")
    assert says in str(caught.value)


def test_files_of_one_run_belong_together() -> None:
    named = [(Path(t.header.node), t) for t in DONE.traces]
    check(named)
    with pytest.raises(BadTrace, match="its trace is not here: give all files of the run together"):
        check(named[1:])
    with pytest.raises(BadTrace, match="a second trace of n1; the first is n1"):
        check([*named, named[0]])
    other = [(Path(t.header.node), t) for t in run(6).traces]
    with pytest.raises(BadTrace):
        check([named[0], *other[1:]])
