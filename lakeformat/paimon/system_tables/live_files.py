# SPDX-License-Identifier: Apache-2.0
"""The live files of a snapshot, column by column."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from lakeformat.paimon.metadata.manifest import ManifestColumns, live_rows, read_manifests
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, manifests_of
from lakeformat.paimon.metadata.schema_file import require_schema_of
from lakeformat.paimon.read.plan import find_manifest
from lakeformat.paimon.system_tables.partition_text import PartitionTexts
from lakeformat.paimon.system_tables.source import Source

__all__ = ["LiveFiles", "snapshot_manifests"]


class LiveFiles:
    """Every live file of a snapshot, in commit order, including level-0 files that reads skip."""

    def __init__(self, source: Source) -> None:
        self.source = source
        handle = source.handle
        columns = read_manifests(handle.storage, handle.layout, snapshot_manifests(source))
        self.columns: ManifestColumns = columns.take(live_rows(columns, source.name))

    def __len__(self) -> int:
        return len(self.columns)

    def numbers(self, name: str) -> pa.Array:
        """Return the values of the manifest column ``name`` for all files, as an array of
        numbers.
        """
        column = getattr(self.columns, name)
        mask = None if column.present is None else ~column.present
        return pa.array(column.numbers, pa.int64(), mask=mask)

    def texts(self, name: str) -> list[Any]:
        """Return the values of the manifest column ``name`` for all files, as str or tuples
        of str.
        """
        found: list[Any] = getattr(self.columns, name).texts()
        return found

    @cached_property
    def partitions(self) -> PartitionTexts:
        """Return the partition of each file as text."""
        return PartitionTexts(
            self.source.handle.schema,
            self.columns.partition.to_arrow(),
            lambda row: self.name(row, "_PARTITION"),
        )

    def name(self, row: int, what: str) -> str:
        """Return the text ``<what> of data file <name> in <manifest>`` for error messages.

        ``row`` is the position of the data file.
        """
        return name_of_file(self.source, self.columns, row, what)


def name_of_file(source: Source, columns: ManifestColumns, row: int, what: str) -> str:
    """Return the text ``<what> of data file <name> in <manifest>`` for error messages.

    ``row`` is the position of the data file in ``columns``.
    """
    [entry] = columns.entries(np.array([row]))
    snapshot = source.snapshot
    where = source.name if snapshot is None else find_manifest(source.handle, snapshot, entry)
    return f"{what} of data file {entry.file.file_name} in {where}"


def snapshot_manifests(source: Source) -> list[ManifestMeta]:
    """Return the manifests of the snapshot that ``source`` shows; empty without a snapshot.

    The manifests of the base list come first, then those of the delta list.
    """
    snapshot, handle = source.snapshot, source.handle
    if snapshot is None:
        return []
    require_schema_of(handle.storage, handle.layout, snapshot, known=handle.schema.id)
    return manifests_of(handle.storage, handle.layout, snapshot)
