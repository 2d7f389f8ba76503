# SPDX-License-Identifier: Apache-2.0
"""Makes the manifest entries of new delete files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import pyarrow as pa

from lakeformat.iceberg.metadata.manifest import POSITION_DELETES
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.write.new_entries import NewFile, new_entries

__all__ = ["FileWithDeletes", "delete_entries"]


class FileWithDeletes(Protocol):
    """A data file in which rows are deleted."""

    @property
    def path(self) -> str:
        """The URI of the file."""
        ...

    @property
    def spec_id(self) -> int: ...

    @property
    def scope(self) -> str:
        """A text that is equal only for files of the same partition spec and partition."""
        ...

    @property
    def partition(self) -> pa.StructArray:
        """The values of the partition: one row."""
        ...


def delete_entries(
    metadata: TableMetadata, made: Iterable[tuple[FileWithDeletes, NewFile]]
) -> list[pa.Table]:
    """Return the entries of new delete files, as one table for each partition spec.

    Each delete file is given with a data file of the same partition.
    """
    by_spec: dict[int, list[NewFile]] = {}
    for file, new in made:
        by_spec.setdefault(file.spec_id, []).append(new)
    return [
        new_entries(
            files,
            spec_id,
            partition_type(metadata, metadata.spec_of(spec_id)),
            content=POSITION_DELETES,
        )
        for spec_id, files in by_spec.items()
    ]
