# SPDX-License-Identifier: Apache-2.0
"""Checks that the columns of a DataFrame fit a table, before Spark computes any row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import YearMonthIntervalType

from lakeformat import TableSchema
from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.write.input_columns import InputColumns
from lakeformat.paimon.write.row_kinds import RowKinds

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["require_fitting"]


def require_fitting(columns: StructType, schema: TableSchema, kinds: str | None) -> None:
    """Raise ``InvalidRequestError`` for an unknown column, a column of another type, and a missing
    column that is NOT NULL and has no default.

    Tasks check the columns as well, but only if there are rows. ``kinds`` is the column with the
    kinds of rows, or None.
    """
    try:
        given = to_arrow_schema(columns)
    except PySparkException:
        _require_no_months(columns)
        return  # tasks check the columns: Spark can pass some types, such as CHAR, all the same
    none = pa.RecordBatch.from_arrays([pa.array([], each.type) for each in given], schema=given)
    rows, _ = RowKinds(schema, kinds).split(none)
    InputColumns(schema.fields)(rows)
    for field in schema.fields:
        is_made = field.type.nullable or field.default_value is not None
        if not is_made and field.name not in rows.schema.names:
            raise InvalidRequestError(
                f"column {field.name!r} is NOT NULL, but the rows do not have it: add it. The rows "
                f"have the columns {', '.join(rows.schema.names)}"
            )


def _require_no_months(columns: StructType) -> None:
    for field in columns:
        if isinstance(field.dataType, YearMonthIntervalType):
            raise InvalidRequestError(
                f"column {field.name!r} has type {field.dataType.simpleString()}, which Spark does "
                "not pass to Python: drop the column, or cast it to string. Nothing was written"
            )
