# SPDX-License-Identifier: Apache-2.0
"""The catalogs of Iceberg tables in which a connection can publish Paimon tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.publish.targets.wanted import wanted_catalogs

if TYPE_CHECKING:
    from lakeformat.catalog.iceberg.options import IcebergOptions
    from lakeformat.paimon.handle import TableHandle
    from lakeformat.publish.targets.entry import CatalogEntry

__all__ = ["PublishingConnection"]


class PublishingConnection:
    """A connection that opens the entries of published tables in catalogs of Iceberg tables.

    A client is imported only for a table that has an entry. The repr shows no values, because some
    are secrets.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = dict(options)

    def __repr__(self) -> str:
        return f"<PublishingConnection {', '.join(sorted(self._given))}>"

    def require(self, handle: TableHandle) -> None:
        """Raise ``UnsupportedError`` if an option is missing or wrong for a catalog in which the
        table is published.
        """
        for wanted in wanted_catalogs(handle):
            from lakeformat.catalog.publication.client_settings import client_settings

            try:
                client_settings(handle.options, wanted.kind, self._given)
            except UnsupportedError:
                raise
            except InvalidRequestError as reason:
                raise UnsupportedError(str(reason)) from None

    def entries(self, handle: TableHandle) -> tuple[CatalogEntry, ...]:
        """Return the entries of a table in catalogs; no catalog is contacted yet."""
        found: list[CatalogEntry] = []
        for wanted in wanted_catalogs(handle):
            from lakeformat.catalog.publication.client_settings import client_settings

            settings = client_settings(handle.options, wanted.kind, self._given)
            for database, table in wanted.names:
                found.append(_open_entry(settings, handle, database, table))
        return tuple(found)


def _open_entry(
    options: IcebergOptions, handle: TableHandle, database: str, table: str
) -> CatalogEntry:
    from lakeformat.catalog.iceberg.catalog_files import CatalogFiles
    from lakeformat.catalog.iceberg.open import named_files_metastore, rest_metastore
    from lakeformat.catalog.iceberg.options import REST, WAREHOUSE
    from lakeformat.catalog.names import TableName
    from lakeformat.publish.place import versions_of

    name, versions = TableName(database, table), versions_of(handle)
    files = CatalogFiles(versions.storage, versions.root, options.storage, versions.outside)
    if options.metastore == REST:
        from lakeformat.catalog.publication.rest_entry import RestEntry

        warehouse = options.client.get(WAREHOUSE, "")
        return RestEntry(rest_metastore(options, files, warehouse), name, options.shown_uri)
    from lakeformat.catalog.publication.named_entry import NamedEntry

    metastore = named_files_metastore(options, files, handle.environment)
    return NamedEntry(metastore, name, versions, options.shown_uri)
