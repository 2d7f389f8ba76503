# SPDX-License-Identifier: Apache-2.0
"""The catalogs of Iceberg tables in which a connection can publish Paimon tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.publish.targets.wanted import wanted_catalogs

if TYPE_CHECKING:
    from lakeformat.paimon.handle import TableHandle
    from lakeformat.publish.targets.entry import CatalogEntry

__all__ = ["PublishingConnection"]


class PublishingConnection:
    """Opens the entries of published tables in catalogs of Iceberg tables.

    A client is imported only for a table that has an entry. The repr shows no values, because some
    are secrets.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = dict(options)

    def __repr__(self) -> str:
        return f"<PublishingConnection {', '.join(sorted(self._given))}>"

    def require(self, handle: TableHandle) -> None:
        """Raise ``UnsupportedError`` if an option of a catalog that the table names is missing or
        wrong.
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
            from lakeformat.catalog.publication.open_entry import open_entry

            settings = client_settings(handle.options, wanted.kind, self._given)
            for database, table in wanted.names:
                found.append(open_entry(settings, handle, database, table))
        return tuple(found)
