"""Whether the columns of a DataFrame fit into a table, before any row of it is made."""

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
    """Refuse columns the table has not, or of other types, as tasks refuse them of rows.

    Where there is no row, no task would.
    """
    try:
        given = to_arrow_schema(columns)
    except PySparkException:
        return  # Spark has no such values for Python, and says so itself
    none = pa.RecordBatch.from_arrays([pa.array([], each.type) for each in given], schema=given)
    rows, _ = RowKinds(schema, kinds).split(none)
    InputColumns(schema.fields)(rows)
    for field in schema.fields:
        is_made = field.type.nullable or field.default_value is not None
        if not is_made and field.name not in rows.schema.names:
            raise InvalidRequestError(
                f"column {field.name!r} is NOT NULL, but the rows have no such column; they have "
                f"{', '.join(rows.schema.names)}"
            )
