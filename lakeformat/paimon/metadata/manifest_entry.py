# SPDX-License-Identifier: Apache-2.0
"""Manifest entries: each adds a data file to a bucket or deletes one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from lakeformat.paimon.metadata.data_file_meta import DataFileMeta

__all__ = ["FORMAT_VERSION", "FileKind", "ManifestEntry"]

FORMAT_VERSION = 2
"""The version of manifests and manifest lists; a new field does not change it."""


class FileKind(IntEnum):
    """The kind of an entry: it adds or deletes a file."""

    ADD = 0
    DELETE = 1


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One file of one bucket, added or deleted."""

    kind: FileKind
    partition: bytes
    """The partition as a framed binary row; a row without fields if the table is unpartitioned."""
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> tuple[object, ...]:
        """The values that identify the file, equal in its ADD entry and its DELETE entry."""
        file = self.file
        return (
            self.partition,
            self.bucket,
            file.level,
            file.file_name,
            file.extra_files,
            file.embedded_file_index,
            file.external_path,
        )
