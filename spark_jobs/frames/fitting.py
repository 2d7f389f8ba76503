# SPDX-License-Identifier: Apache-2.0
"""Checks that the columns of a DataFrame fit a table, before any row is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema

from lakeformat import TableSchema
from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.write.input_columns import InputColumns
from lakeformat.paimon.write.row_kinds import RowKinds

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["require_fitting"]


def require_fitting(columns: StructType, schema: TableSchema, kinds: str | None) -> None:
    """Raise ``InvalidRequestError`` for a column that the table does not have, that has another
    type, or that is NOT NULL and missing.

    Tasks check the columns, too, but only if there are rows. ``kinds`` names the column of row
    kinds.
    """
    try:
        given = to_arrow_schema(columns)
    except PySparkException:
        return  # Spark raises its own error for types without Python values
    none = pa.RecordBatch.from_arrays([pa.array([], each.type) for each in given], schema=given)
    rows, _ = RowKinds(schema, kinds).split(none)
    InputColumns(schema.fields)(rows)
    for field in schema.fields:
        is_made = field.type.nullable or field.default_value is not None
        if not is_made and field.name not in rows.schema.names:
            raise InvalidRequestError(
                f"column {field.name!r} is NOT NULL, but the rows do not have it: add it. Their "
                f"columns are {', '.join(rows.schema.names)}"
            )
