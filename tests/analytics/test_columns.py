"""Columns: what goes into Parquet comes back equal, and what is none of ours is told."""

from pathlib import Path
from typing import Any, get_args

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.analytics.columns import (
    CLIENT,
    TRACE,
    ClientRecord,
    from_client_records,
    from_records,
    to_client_records,
    to_records,
)
from framework.errors import BadTrace
from framework.footprint import Footprint
from framework.sim.run import run
from framework.trace.record import Happening, Record
from tests.tiers import examples

quick = settings(derandomize=True, deadline=None, max_examples=examples(37, 150))

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
longs = st.integers(-(2**63), 2**63 - 1)
reals = st.floats(allow_nan=False)
modes = st.sampled_from(["r", "w", "ir", "iw"])


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=3).map(tuple)


footprints = st.builds(Footprint, texts, st.none() | some(st.tuples(texts, modes)), st.booleans())

#: By the type of a field: so a field that is added to Record is tested, too, or stops this test.
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    int: longs,
    float: reals,
    bool: st.booleans(),
    str: texts,
    Happening: st.sampled_from(get_args(Happening)),
    Footprint | None: st.none() | footprints,
    tuple[str, ...]: some(texts),
    tuple[int, ...]: some(longs),
    tuple[tuple[str, Footprint], ...]: some(st.tuples(texts, footprints)),
    tuple[tuple[str, int], ...]: some(st.tuples(texts, longs)),
    tuple[tuple[str, str], ...]: some(st.tuples(texts, texts)),
}
records = st.fixed_dictionaries({f.name: BY_TYPE[f.type] for f in msgspec.structs.fields(Record)}).map(
    lambda fields: Record(**fields)
)
SMALL = st.integers(-(2**31), 2**31 - 1)
calls = st.fixed_dictionaries(
    {
        f.name: SMALL if f.name in ("process", "payload") else BY_TYPE[f.type]
        for f in msgspec.structs.fields(ClientRecord)
    }
).map(lambda fields: ClientRecord(**fields))


@quick
@given(found=st.lists(records, max_size=4))
def test_any_trace_record_comes_back(found: list[Record]) -> None:
    assert to_records(from_records(found)) == found


@quick
@given(found=st.lists(calls, max_size=4))
def test_any_client_record_comes_back(found: list[ClientRecord]) -> None:
    assert to_client_records(from_client_records(found)) == found


def test_columns_are_the_fields() -> None:
    assert TRACE.names == [f.name for f in msgspec.structs.fields(Record)]
    assert CLIENT.names == [f.name for f in msgspec.structs.fields(ClientRecord)]


def test_a_run_goes_through_a_file(tmp_path: Path) -> None:
    for trace in run(5).traces:
        pq.write_table(from_records(trace.records), tmp_path / "t.parquet", compression="zstd")
        assert to_records(pq.read_table(tmp_path / "t.parquet")) == trace.records


def test_defaults_are_written() -> None:
    """Nothing is null but a missing footprint, and the keys of a call without key."""
    row = from_records([Record(i=1, node="n1", at=0.5, event="stop", view=1)]).to_pylist()[0]
    assert [name for name, value in row.items() if value is None] == ["footprint"]
    assert (row["no"], row["complete"], row["parts"], row["group"]) == (-1, True, [], "")
    held = Record(i=1, node="n1", at=0, event="deliver", view=1, footprint=Footprint("show"))
    assert from_records([held]).to_pylist()[0]["footprint"] == {"method": "show", "keys": None, "readonly": False}


def test_what_is_none_of_ours_is_told() -> None:
    table = from_records([Record(i=1, node="n1", at=0.5, event="stop", view=1)])
    with pytest.raises(BadTrace, match=r"n1/part-0: no column why; unknown column later"):
        to_records(table.drop_columns(["why"]).append_column("later", pa.array([1])), "n1/part-0")
    strange = table.set_column(table.column_names.index("event"), "event", pa.array(["explode"]))
    with pytest.raises(BadTrace, match=r"n1: row 1: Invalid enum value 'explode'"):
        to_records(strange, "n1")
    wrong = table.set_column(table.column_names.index("i"), "i", pa.array(["x"]))
    with pytest.raises(BadTrace, match="n1: "):
        to_records(wrong, "n1")
