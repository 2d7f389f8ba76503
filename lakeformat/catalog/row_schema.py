# SPDX-License-Identifier: Apache-2.0
"""The columns of a Paimon or Iceberg table, for readers that convert files of other programs to
these columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakeformat.paimon.schema import TableSchema

if TYPE_CHECKING:
    from lakeformat.iceberg.table.table import IcebergTable
    from lakeformat.mixed.table import MixedTable
    from lakeformat.paimon.table import Table

__all__ = ["row_schema"]


def row_schema(table: Table | IcebergTable | MixedTable) -> TableSchema:
    """Return the columns and keys of a table as a Paimon schema.

    The schema of an Iceberg or Mixed table has only nullable columns, because the writer of the
    table checks for nulls itself. The partition keys are then only the columns of identity
    transforms.
    """
    schema = table.schema
    if isinstance(schema, TableSchema):
        return schema
    # A Paimon table does not need this module.
    from lakeformat.iceberg.read.condition_fields import condition_fields

    fields = condition_fields(schema)
    names = {field.name for field in fields}
    return TableSchema(
        id=schema.schema_id,
        fields=fields,
        highest_field_id=max((field.id for field in fields), default=0),
        primary_keys=tuple(getattr(table, "primary_key", ())),  # of a Mixed table
        partition_keys=tuple(term for term in _partitions(table) if term in names),
    )


def _partitions(table: Table | IcebergTable | MixedTable) -> Sequence[str]:
    found: Sequence[str] = getattr(table, "partition_by", ())
    return found
