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
"""Properties that keep the ten newest metadata files, for readers that have opened one of them, and
forbid engines of Iceberg to delete files: the files belong to the Paimon table.
"""


def protected(metadata: TableMetadata) -> TableMetadata:
    """Return the metadata with the property that forbids engines of Iceberg to delete files.

    Earlier versions of this library did not set it. If the metadata has it, return the same object.
    """
    properties = {**metadata.properties, **_PROTECTION}
    return (
        metadata if properties == metadata.properties else replace(metadata, properties=properties)
    )
