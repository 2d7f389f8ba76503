# SPDX-License-Identifier: Apache-2.0
"""Selects the files that a publication may delete: those in its own directory.

Another program may have changed the metadata, so that it names files of the Paimon table.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakeformat.iceberg.metadata.metadata_file import METADATA
from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["own_files"]


def own_files(metadata: TableMetadata, addresses: Iterable[str]) -> list[str]:
    """Return the URIs of ``addresses`` that are directly in the directory ``metadata``, where a
    publication writes all of its files.
    """
    directory = f"{metadata.location.rstrip('/')}/{METADATA}/"
    return [
        each
        for each in addresses
        if each.startswith(directory) and "/" not in each.removeprefix(directory)
    ]
