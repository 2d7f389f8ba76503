# SPDX-License-Identifier: Apache-2.0
"""The partition fields of a table as text."""

from __future__ import annotations

from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["partition_terms"]


def partition_terms(metadata: TableMetadata) -> list[str]:
    """Return the columns and transforms of the default spec, such as ``day(event_time)``."""
    found = []
    for field in metadata.spec_of(metadata.default_spec_id).fields:
        column = metadata.schema.name_of(field.source_id) or str(field.source_id)
        found.append(column if field.transform == "identity" else f"{field.transform}({column})")
    return found
