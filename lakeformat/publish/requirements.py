# SPDX-License-Identifier: Apache-2.0
"""Checks that the schema and the options of a Paimon table can be published as Iceberg metadata."""

from __future__ import annotations

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.schema import TableSchema
from lakeformat.publish.schemas import iceberg_schema

__all__ = ["require_publishable"]

_ONLY = {
    "data-evolution.enabled": "false",
}
"""The only value that the option may have in a published table, by the key of the option."""


def require_publishable(schema: TableSchema) -> None:
    """Raise ``UnsupportedError`` if tables with this schema cannot be published."""
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
    iceberg_schema(schema, options.iceberg_format_version)
