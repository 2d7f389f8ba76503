# SPDX-License-Identifier: Apache-2.0
"""The format of a new table of a catalog."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError

__all__ = ["is_mixed"]


def is_mixed(table_format: object) -> bool:
    """Return True for ``mixed``; raise unless the format is one that the catalog creates."""
    if table_format not in ("iceberg", "mixed"):
        raise InvalidRequestError(
            f"format must be 'iceberg' or 'mixed', got {table_format!r}: for Paimon tables open "
            "the catalog with format='paimon'"
        )
    return table_format == "mixed"
