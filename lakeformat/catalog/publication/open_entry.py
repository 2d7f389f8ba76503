# SPDX-License-Identifier: Apache-2.0
"""Opens the entry of a published table in a catalog, with the client of that catalog."""

from __future__ import annotations

from lakeformat.catalog.iceberg.catalog_files import CatalogFiles
from lakeformat.catalog.iceberg.options import REST, WAREHOUSE, IcebergOptions
from lakeformat.catalog.names import TableName
from lakeformat.paimon.handle import TableHandle
from lakeformat.publish.place import versions_of
from lakeformat.publish.targets.entry import CatalogEntry

__all__ = ["open_entry"]


def open_entry(
    options: IcebergOptions, handle: TableHandle, database: str, table: str
) -> CatalogEntry:
    """Return the entry of ``database.table``; the catalog is not contacted yet."""
    name, versions = TableName(database, table), versions_of(handle)
    files = CatalogFiles(versions.storage, versions.root, options.storage, versions.outside)
    if options.metastore == REST:
        from lakeformat.catalog.iceberg.open import rest_metastore
        from lakeformat.catalog.publication.rest_entry import RestEntry

        warehouse = options.client.get(WAREHOUSE, "")
        return RestEntry(rest_metastore(options, files, warehouse), name, options.shown_uri)
    from lakeformat.catalog.iceberg.open import named_files_metastore
    from lakeformat.catalog.publication.named_entry import NamedEntry

    metastore = named_files_metastore(options, files, handle.environment)
    return NamedEntry(metastore, name, versions, options.shown_uri)
