"""Tables of a few rows that the driver has: places, members, conflicts.

Spark gets them as part of the plan, not as something to be computed. So no job runs to bring them to a join, Spark
knows how small they are, and what is joined with an empty one is left out of the plan.
"""

from collections.abc import Sequence
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def little(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    """As createDataFrame, which would make an RDD of them."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    shape = cast(StructType, StructType.fromDDL(schema))
    wanted = to_arrow_schema(shape)
    columns = list(zip(*rows, strict=True)) or [()] * len(wanted)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, wanted, strict=True)]
    made: DataFrame = spark.createDataFrame(pa.Table.from_arrays(arrays, schema=wanted), shape)
    return made
