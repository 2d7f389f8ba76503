"""What a manifest says about one data file: that it is added to a bucket or taken out of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from lakeformat.paimon.metadata.data_file_meta import DataFileMeta

__all__ = ["FORMAT_VERSION", "FileKind", "ManifestEntry"]

FORMAT_VERSION = 2
"""Of manifests and manifest lists; new fields come without a new number."""


class FileKind(IntEnum):
    """Whether an entry brings a file in or takes it out."""

    ADD = 0
    DELETE = 1


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One file of one bucket, added or deleted."""

    kind: FileKind
    partition: bytes
    """The partition's framed binary row; one without fields when unpartitioned."""
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two entries speak of the same file."""
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
