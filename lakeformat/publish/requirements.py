# SPDX-License-Identifier: Apache-2.0
"""The tables whose Iceberg metadata can be published, decided by their schema alone."""

from __future__ import annotations

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.schema import TableSchema
from lakeformat.publish.schemas import iceberg_schema

__all__ = ["require_publishable"]

_ONLY = {
    "metadata.iceberg.format-version": "2",
    "metadata.iceberg.storage-location": "table-location",
    "data-evolution.enabled": "false",
    "deletion-vectors.enabled": "false",
}
"""The only value of these options with which a table can be published."""


def require_publishable(schema: TableSchema) -> None:
    """Raise ``UnsupportedError`` unless tables with this schema can be published."""
    given = {key: value.strip().lower() for key, value in schema.options.items()}
    for key, only in _ONLY.items():
        if given.get(key, only) != only:
            raise UnsupportedError(
                f"the option {key!r} is {schema.options[key]!r}, and Iceberg metadata is published "
                f"only with {only!r}: change the option"
            )
    options = schema.table_options
    formats = {options.file_format, *options.file_format_per_level.values()}
    if formats != {"parquet"}:
        raise UnsupportedError(
            f"its data files are written as {', '.join(sorted(formats))}, but only Parquet files "
            "are published: set 'file.format' to 'parquet' before the first commit"
        )
    iceberg_schema(schema)
