"""Bounds of a file are the least and the greatest of its values, from its footer or its rows."""

from __future__ import annotations

import io
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakeformat.files.column_statistics import Detail, StatisticsMode
from lakeformat.files.file_writer import FileSettings
from lakeformat.files.parquet.arrow_file import ArrowFile, ParquetLayout
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.partition_summary import least_and_most
from lakeformat.iceberg.metadata.single_value_bytes import single_value_bytes
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.iceberg.write.file_metrics import FileMetrics
from lakeformat.iceberg.write.parquet_columns import parquet_schema, to_stored

NUMBERS = [0, 1, -1, 127, -128, 2**31 - 1, -(2**31)]
LONGS = [*NUMBERS, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf]
VALUES: dict[PrimitiveType, list[Any]] = {
    PrimitiveType("int"): NUMBERS,
    PrimitiveType("long"): LONGS,
    PrimitiveType("float"): FLOATS,
    PrimitiveType("double"): FLOATS,
    PrimitiveType("decimal", (9, 2)): [Decimal(n) for n in ("0.00", "-1.00", "9.99")],
    PrimitiveType("decimal", (38, 0)): [Decimal(n) for n in (0, -1, 256, -(10**37))],
    PrimitiveType("date"): NUMBERS,
    PrimitiveType("time"): [0, 1, 86_399_999_999],
    PrimitiveType("timestamp"): LONGS,
    PrimitiveType("timestamptz"): LONGS,
    PrimitiveType("timestamp_ns"): LONGS,
    PrimitiveType("string"): ["", "a", "ab", "é", "\U0001f600", "z" * 4096, "y" * 4097, "a" * 9000],
    PrimitiveType("binary"): [b"", b"\xff", b"a" * 9000],
    PrimitiveType("boolean"): [True, False],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_bounds_are_the_least_and_the_greatest_value(kind: PrimitiveType) -> None:
    seed = random.randrange(1 << 30)
    print(f"SEED={seed}")
    draw = random.Random(seed)
    fields = (Field(1, "c", kind),)
    schema, given = parquet_schema(fields), to_arrow_type(kind)
    width = pa.int32() if kind.name == "date" else pa.int64()
    for _ in range(40):
        pool = draw.sample([*VALUES[kind], None], draw.randint(1, 3))
        groups = [draw.choices(pool, k=draw.randint(1, 4)) for _ in range(draw.randint(1, 3))]
        metrics = FileMetrics(fields, {1: StatisticsMode(Detail.BOUNDS)})
        settings = FileSettings("zstd", 1, 1 << 20, has_dictionaries=True)
        file = ArrowFile(io.BytesIO(), ParquetLayout(schema, settings, ["c"], True, None))
        every = []
        for values in groups:
            found = pa.array(values, width if pa.types.is_temporal(given) else given)
            rows = pa.table({"c": found.cast(given)})
            metrics.add(rows)
            file.write(to_stored(rows, schema))
            every.append(rows)
        expected = least_and_most(pa.concat_tables(every).column("c").combine_chunks())
        wanted = [[], []]
        if expected is not None:
            wanted = [[(1, bound)] for bound in single_value_bytes(expected).to_pylist()]
        result = metrics.result(file.close())
        assert [result["lower_bounds"], result["upper_bounds"]] == wanted, groups
