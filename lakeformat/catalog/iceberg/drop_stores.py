# SPDX-License-Identifier: Apache-2.0
"""Drops one table, or both stores of a Mixed table, after all are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakeformat.catalog.iceberg.metastore import Metastore
from lakeformat.catalog.names import TableName
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.purge import files_to_purge
from lakeformat.iceberg.purge import purge as delete_files

__all__ = ["drop_stores"]


def drop_stores(
    metastore: Metastore,
    stores: Sequence[TableName],
    handle: Callable[[TableName], TableHandle],
    *,
    purge: bool,
) -> None:
    """Remove the stores in their order; with ``purge`` also delete the files of each.

    If a store cannot be dropped, ``InvalidRequestError`` or ``UnsupportedError`` is raised before
    anything is deleted.
    """
    for store in stores:
        metastore.require_removable(store, purge=purge)
    if not purge or metastore.deletes_files:
        for store in stores:
            metastore.remove_table(store, purge=purge)
        return
    planned = [(store, files_to_purge(handle(store).load())) for store in stores]
    for store, files in planned:
        metastore.remove_table(store, purge=False)
        delete_files(files)
