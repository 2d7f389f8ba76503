# SPDX-License-Identifier: Apache-2.0
"""The AWS Glue catalog."""

from __future__ import annotations

from pyiceberg.catalog.glue import GlueCatalog

from lakeformat.catalog.iceberg.catalog_files import Answer
from lakeformat.catalog.iceberg.client import ClientMetastore, metadata_file_in
from lakeformat.catalog.names import TableName

__all__ = ["GlueMetastore"]


class GlueMetastore(ClientMetastore):
    """Databases and Iceberg tables of AWS Glue."""

    def _connect(self) -> GlueCatalog:
        return GlueCatalog("lake", **self._options.client)

    def _find(self, client: GlueCatalog, name: TableName, doing: str) -> Answer:
        table = client._get_glue_table(name.database, name.table)
        return Answer(metadata_file_in(table.get("Parameters"), name))
