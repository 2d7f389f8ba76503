# SPDX-License-Identifier: Apache-2.0
"""The metastore AWS Glue."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from pyiceberg.catalog.glue import GlueCatalog, _IcebergSchemaToGlueType
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.schema import visit

from lakeformat.catalog.iceberg.catalog_files import Answer
from lakeformat.catalog.iceberg.client_named_files import ClientNamedFilesMetastore, Sent
from lakeformat.catalog.iceberg.client_schema import client_schema
from lakeformat.catalog.iceberg.table_parameters import (
    first_parameters,
    metadata_file_in,
    parameters_after,
)
from lakeformat.catalog.names import TableName
from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["GlueMetastore"]

_KIND = {"TableType": "EXTERNAL_TABLE"}
_KEPT = (
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "TableType",
)
"""The members of Glue's answer that a commit sends back to Glue.

Glue deletes the members that a commit does not send.
"""
_COMMENT_LENGTH = 255
_NOT_IN_COMMENTS = re.compile("[^ -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that Glue refuses in a comment."""


class GlueMetastore(ClientNamedFilesMetastore):
    """The databases and Iceberg tables of AWS Glue."""

    def rename_table(self, old: TableName, new: TableName) -> None:
        """Raise ``UnsupportedError``, as ``require_renamable`` does."""
        self.require_renamable(old, new)

    def require_renamable(self, old: TableName, new: TableName) -> None:
        """Raise ``UnsupportedError``: Glue needs two steps for a rename.

        If the second step failed, Glue would list the table under both names.
        """
        raise UnsupportedError(
            f"Glue cannot rename table '{old}' in one step: create '{new}' and copy the rows, or "
            "rename it with Spark while no program writes"
        )

    def _connect(self) -> GlueCatalog:
        return GlueCatalog("lake", **self._options.client)

    def _find(self, client: GlueCatalog, name: TableName, doing: str) -> Answer:
        table = client._get_glue_table(name.database, name.table)
        return Answer(metadata_file_in(table.get("Parameters"), name))

    def _forget(self, name: TableName, address: str | None) -> None:
        self._ask(
            f"drop table '{name}'",
            lambda client: client.drop_table((name.database, name.table)),
        )

    def name_first(self, name: TableName, address: str, metadata: TableMetadata) -> bool:
        given = {
            "Name": name.table,
            **_KIND,
            "Parameters": first_parameters(address, metadata),
            "StorageDescriptor": {
                "Columns": _columns(name, metadata),
                "Location": metadata.location,
            },
        }

        def create(client: GlueCatalog, sent: Sent) -> bool:
            sent.is_sent = True
            try:
                client._create_glue_table(name.database, name.table, given)
            except TableAlreadyExistsError:
                # The client sends a request again if it got no answer.
                return self._was_named(name, address)
            return True

        return self._send(f"create table '{name}'", name, address, create)

    def name_next(
        self, name: TableName, old: str, new: str, base: TableMetadata, metadata: TableMetadata
    ) -> bool:
        def publish(client: GlueCatalog, sent: Sent) -> bool:
            table = client._get_glue_table(name.database, name.table)
            version = table.get("VersionId")
            if version is None:
                raise UnsupportedError(
                    f"Glue's answer about table '{name}' has no VersionId, so a commit of another "
                    "program could be lost: ask the operators of the catalog for the reason, or "
                    "write with Spark"
                )
            if metadata_file_in(table.get("Parameters"), name) != old:
                return False
            kept = {key: table[key] for key in _KEPT if key in table}
            given = {**_KIND, **kept, "Name": name.table}
            given["Parameters"] = parameters_after(table["Parameters"], new, base, metadata)
            if base.schema != metadata.schema and "StorageDescriptor" in given:
                given["StorageDescriptor"] = _described(name, metadata, table["StorageDescriptor"])
            sent.is_sent = True
            try:
                client._update_glue_table(name.database, name.table, given, version)
            except CommitFailedException:
                # The client sends a request again if it got no answer.
                return self._was_named(name, new)
            return True

        return self._send(f"publish table '{name}'", name, new, publish)


def _described(name: TableName, metadata: TableMetadata, before: dict[str, Any]) -> dict[str, Any]:
    """Return ``before`` with the columns of ``metadata``, or unchanged if PyIceberg does not
    support the type of a column.
    """
    with suppress(UnsupportedError):
        return {**before, "Columns": _columns(name, metadata)}
    return before


def _columns(name: TableName, metadata: TableMetadata) -> list[dict[str, Any]]:
    """Return the columns as Glue stores them for Athena."""
    schema = client_schema(metadata, f"Glue needs the columns of table '{name}'")
    return [
        {
            "Name": field.name,
            "Type": visit(field.field_type, _IcebergSchemaToGlueType()),
            **_comment(field.doc),
            "Parameters": {
                "iceberg.field.id": str(field.field_id),
                "iceberg.field.optional": str(field.optional).lower(),
                "iceberg.field.current": "true",
            },
        }
        for field in schema.fields
    ]


def _comment(doc: str | None) -> dict[str, str]:
    """Return the comment of a column as Glue accepts it: short, in one line, and without control
    characters.
    """
    line = " ".join(_NOT_IN_COMMENTS.sub(" ", doc or "").split())[:_COMMENT_LENGTH]
    return {"Comment": line} if line else {}
