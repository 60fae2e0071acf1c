"""What Spark is told about the columns is what obo load writes."""

import pyarrow as pa

from framework.analytics import columns, fig9_points, schema

NAMES = {"int64": "bigint", "int32": "int", "double": "double", "string": "string", "bool": "boolean"}


def ddl(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{ddl(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{f.name}:{ddl(f.type)}' for f in kind)}>"
    return NAMES[str(kind)]


def test_trace_columns_are_those_of_the_run_directory():
    assert {f.name: ddl(f.type) for f in columns.TRACE} == schema.TRACE_FIELDS


def test_client_columns_are_those_of_the_run_directory():
    assert {f.name: ddl(f.type) for f in columns.CLIENT} == schema.CLIENT_FIELDS


def test_simulated_points_are_those_of_the_document():
    """docs/fig9.md is what obo fig9 has measured."""
    import re
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "fig9.md").read_text()
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) ± ([\d.]+) \| ([\d.]+) ± ([\d.]+) \| ([\d.]+) ± ([\d.]+) \|$", text, re.M)
    assert tuple(int(r[0]) for r in rows) == fig9_points.RATIOS
    for n, ucast in enumerate((1.0, 0.5, 0.0)):
        assert fig9_points.SIMULATED[ucast] == tuple((float(r[1 + 2 * n]), float(r[2 + 2 * n])) for r in rows)
