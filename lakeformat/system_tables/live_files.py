"""The live files of a snapshot, column by column, with what they have in common decoded once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pyarrow as pa

from lakeformat.metadata.manifest import ManifestColumns, live_rows, read_manifests
from lakeformat.metadata.manifest_list import ManifestMeta, read_manifest_list
from lakeformat.system_tables.partition_text import PartitionTexts
from lakeformat.system_tables.source import Source

__all__ = ["LiveFiles", "manifests_of"]


class LiveFiles:
    """Every file of a snapshot, in the order they were committed; none is hidden."""

    def __init__(self, source: Source) -> None:
        self.source = source
        handle = source.handle
        names = [manifest.file_name for manifest in manifests_of(source)]
        columns = read_manifests(handle.storage, handle.layout, names)
        self.columns: ManifestColumns = columns.take(live_rows(columns, source.name))

    def __len__(self) -> int:
        return len(self.columns)

    def numbers(self, name: str) -> pa.Array:
        """A column of numbers."""
        column = getattr(self.columns, name)
        mask = None if column.present is None else ~column.present
        return pa.array(column.numbers, pa.int64(), mask=mask)

    def texts(self, name: str) -> list[Any]:
        """A column of texts, or of lists of texts."""
        found: list[Any] = getattr(self.columns, name).texts()
        return found

    @cached_property
    def partitions(self) -> PartitionTexts:
        """The partitions of the files."""
        return PartitionTexts(self.source.handle.schema, self.columns.partition.to_arrow())


def manifests_of(source: Source) -> list[ManifestMeta]:
    """What a snapshot consists of: all manifests before its commit, then those of the commit."""
    snapshot, handle = source.snapshot, source.handle
    if snapshot is None:
        return []
    return [
        found
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        for found in read_manifest_list(handle.storage, handle.layout, name)
    ]
