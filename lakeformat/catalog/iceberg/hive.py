# SPDX-License-Identifier: Apache-2.0
"""The Hive metastore, a service of Thrift."""

from __future__ import annotations

from pyiceberg.catalog.hive import HiveCatalog

from lakeformat.catalog.iceberg.catalog_files import Answer
from lakeformat.catalog.iceberg.client import ClientMetastore, metadata_file_in
from lakeformat.catalog.names import TableName

__all__ = ["HiveMetastore"]


class HiveMetastore(ClientMetastore):
    """Databases and Iceberg tables of a Hive metastore."""

    def _connect(self) -> HiveCatalog:
        return HiveCatalog("lake", **{**self._options.client, "uri": self._options.uri})

    def _find(self, client: HiveCatalog, name: TableName, doing: str) -> Answer:
        with client._client as opened:
            table = client._get_hive_table(opened, name.database, name.table)
        return Answer(metadata_file_in(table.parameters, name))
