# SPDX-License-Identifier: Apache-2.0
"""Checks that a table is published."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.table import Table

__all__ = ["require_published_table"]


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
