# SPDX-License-Identifier: Apache-2.0
"""Replaces the schema of a handle by the newest schema, or by an older schema of the table."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.paimon.commit.same_table import require_same_table
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import read_schema

__all__ = ["newest_schema", "under_schema"]


def newest_schema(handle: TableHandle) -> TableHandle:
    """Return the handle with the newest schema; raise NotFoundError if the table is missing or was
    created again.

    Call this after you read a snapshot: then no file of the snapshot has a newer schema.
    """
    return under_schema(handle, require_same_table(handle))


def under_schema(handle: TableHandle, schema_id: int) -> TableHandle:
    """Return the handle with the schema that has this id."""
    if schema_id == handle.schema.id:
        return handle
    return replace(handle, schema=read_schema(handle.storage, handle.layout, schema_id))
