# SPDX-License-Identifier: Apache-2.0
"""Converts the columns of a table to PyIceberg's classes, for catalogs that list columns."""

from __future__ import annotations

from pydantic import ValidationError
from pyiceberg.schema import Schema

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.schema import schema_to_json

__all__ = ["client_schema"]


def client_schema(metadata: TableMetadata, needed: str) -> Schema:
    """Return the current columns of a table as a schema of PyIceberg.

    A type that PyIceberg lacks raises ``UnsupportedError``, whose message begins with ``needed``.
    """
    try:
        return Schema.model_validate(schema_to_json(metadata.schema))
    except ValidationError as error:
        raise UnsupportedError(
            f"{needed}, but PyIceberg lacks the type of a column: {error.errors()[0]['msg']}. "
            "Create the table with Spark, or in another catalog"
        ) from None
