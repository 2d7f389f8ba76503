# SPDX-License-Identifier: Apache-2.0
"""The columns of a table of any format, in the types that readers of other files convert to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.paimon.schema import TableSchema

if TYPE_CHECKING:
    from lakeformat.iceberg.table.table import IcebergTable
    from lakeformat.paimon.table import Table

__all__ = ["row_schema"]


def row_schema(table: Table | IcebergTable) -> TableSchema:
    """Return the columns of a table; those of an Iceberg table take nulls, which its writer
    checks.
    """
    schema = table.schema
    if isinstance(schema, TableSchema):
        return schema
    # A Paimon table does not need it.
    from lakeformat.iceberg.read.condition_fields import condition_fields

    fields = condition_fields(schema)
    return TableSchema(id=schema.schema_id, fields=fields, highest_field_id=len(fields))
