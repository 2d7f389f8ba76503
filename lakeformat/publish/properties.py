# SPDX-License-Identifier: Apache-2.0
"""The properties of published metadata."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["PROPERTIES", "protected"]

_PROTECTION = {"gc.enabled": "false"}
PROPERTIES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    **_PROTECTION,
}
"""The properties of all published metadata.

The ten metadata files before the newest one are kept, for readers that have opened one of them.
Engines of Iceberg must not delete files, because the files belong to the Paimon table.
"""


def protected(metadata: TableMetadata) -> TableMetadata:
    """Return the metadata with the property that forbids engines of Iceberg to delete files.

    Earlier versions of this library did not set it. If the metadata has it, return the same object.
    """
    properties = {**metadata.properties, **_PROTECTION}
    return (
        metadata if properties == metadata.properties else replace(metadata, properties=properties)
    )
