# SPDX-License-Identifier: Apache-2.0
"""Metastores with a client of PyIceberg that store only the address of a table's metadata file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lakeformat.catalog.iceberg.catalog_files import CatalogFiles
from lakeformat.catalog.iceberg.client import ClientMetastore
from lakeformat.catalog.iceberg.named_files import NamedFilesMetastore
from lakeformat.catalog.iceberg.options import IcebergOptions
from lakeformat.catalog.names import TableName
from lakeformat.environment import Environment
from lakeformat.errors import UnavailableError

__all__ = ["ClientNamedFilesMetastore", "Sent"]


@dataclass(slots=True)
class Sent:
    """A mark that a change was sent to the metastore.

    If the answer is lost after that, the change may have succeeded.
    """

    is_sent: bool = False


class ClientNamedFilesMetastore(ClientMetastore, NamedFilesMetastore):
    """A metastore to which a client sends changes.

    If the answer to a change is lost, the metastore is asked if it names the new metadata file.
    """

    _ending = ".db"

    def __init__(
        self, options: IcebergOptions, files: CatalogFiles, environment: Environment
    ) -> None:
        super().__init__(options, files)
        self._environment = environment

    def stored_name(self, name: TableName) -> TableName:
        """Return ``name`` in lower case, as Hive and Glue store and list it."""
        return replace(name, database=name.database.lower(), table=name.table.lower())

    def beside(self, base: TableName, table: str, database: str) -> TableName:
        """Return the name of the change store in lower case, even if ``base`` names it with
        capitals.

        A base store that an earlier version of this library created may do so.
        """
        return self.stored_name(super().beside(base, table, database))

    def _send(
        self, doing: str, name: TableName, file: str, change: Callable[[Any, Sent], bool]
    ) -> bool:
        """Send a change that makes ``file`` the metadata file of a table; return True on success.

        ``change`` sends the request, records that in ``Sent``, and returns False if another writer
        was first. ``doing`` names the request in messages. If the answer is lost and the metastore
        does not name ``file``, ``CommitOutcomeUnknownError`` is raised.
        """
        sent = Sent()
        try:
            return self._ask(doing, lambda client: change(client, sent))
        except UnavailableError as lost:
            if not sent.is_sent:
                raise
            return self._is_named(name, file, lost)
