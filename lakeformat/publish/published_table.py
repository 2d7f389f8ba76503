# SPDX-License-Identifier: Apache-2.0
"""Checks that a table is published, and finds its newest schema."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.paimon.table import Table

__all__ = ["newest_schema", "require_published_table"]


def require_published_table(table: Table) -> TableHandle:
    """Return the handle of a published table.

    Raise ``InvalidRequestError`` if its options do not ask for publication.
    """
    handle = table._handle
    if not handle.options.publishes_iceberg:
        raise InvalidRequestError(
            f"{handle.uri} does not publish Iceberg metadata: set its option "
            "'metadata.iceberg.storage' to 'table-location'"
        )
    return handle


def newest_schema(handle: TableHandle) -> TableHandle:
    """Return the handle with the newest schema of the table."""
    newest = latest_schema_id(handle.storage, handle.layout)
    if newest is None or newest == handle.schema.id:
        return handle
    return replace(handle, schema=read_schema(handle.storage, handle.layout, newest))
