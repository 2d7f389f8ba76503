# SPDX-License-Identifier: Apache-2.0
"""Metastores that a client of PyIceberg asks, and that only name the metadata file of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    """True once the request is on its way, so that a lost answer may hide its success."""

    is_sent: bool = False


class ClientNamedFilesMetastore(ClientMetastore, NamedFilesMetastore):
    """Sends changes through a client, and finds out about those whose answer was lost."""

    _ending = ".db"

    def __init__(
        self, options: IcebergOptions, files: CatalogFiles, environment: Environment
    ) -> None:
        super().__init__(options, files)
        self._environment = environment

    def _send(
        self, doing: str, name: TableName, file: str, change: Callable[[Any, Sent], bool]
    ) -> bool:
        """Return the result of a change that lets the metastore name a metadata file."""
        sent = Sent()
        try:
            return self._ask(doing, lambda client: change(client, sent))
        except UnavailableError as lost:
            if not sent.is_sent:
                raise
            return self._is_named(name, file, lost)
