# SPDX-License-Identifier: Apache-2.0
"""The warning that lost files make deleted and replaced rows visible again."""

from __future__ import annotations

from lakeformat.paimon.handle import TableHandle

__all__ = ["lost_changes"]


def lost_changes(handle: TableHandle) -> str:
    """Return a sentence about deletes and updates in lost files; empty without a primary key."""
    if not handle.schema.primary_keys:
        return ""
    return (
        ". Deletes and updates in lost files are lost, too: earlier rows, which they deleted or "
        "replaced, appear again. Check the rows of the table after the removal"
    )
