# SPDX-License-Identifier: Apache-2.0
"""Chooses how rows are deleted: by vector, by position, or by rewriting files."""

from __future__ import annotations

from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import word_property
from lakeformat.tables.row_change_report import Method

__all__ = ["method_of"]

_COPY, _MERGE = "copy-on-write", "merge-on-read"
_WITH_DELETES, _WITH_VECTORS = 2, 3
"""The first format versions with position deletes, and with deletion vectors."""


def method_of(metadata: TableMetadata, operation: str) -> Method:
    """Return the method for an operation: ``delete``, ``update`` or ``merge``.

    Files are rewritten in version 1, and if ``write.<operation>.mode`` is ``copy-on-write``.
    Without this mode, version 2 deletes rows by position, and version 3 by vector. Raise
    ``InvalidRequestError`` for an unknown mode.
    """
    mode = word_property(metadata.properties, f"write.{operation}.mode", _MERGE, _COPY)
    if mode == _COPY or metadata.format_version < _WITH_DELETES:
        return Method.REWRITE
    return Method.VECTORS if metadata.format_version >= _WITH_VECTORS else Method.POSITIONS
