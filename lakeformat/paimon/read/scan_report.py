"""What a scan had to read, as far as it has got."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

__all__ = ["ScanReport"]


@dataclass(slots=True)
class ScanReport:
    """Counts of one scan; they grow while it reads, several splits at a time too."""

    files_read: int = 0
    file_bytes: int = 0
    """Of the files that were opened, whole."""
    row_groups: int = 0
    """Of the Parquet files that were opened."""
    row_groups_read: int = 0
    bytes_read: int = 0
    """What the columns read take in the row groups read, as stored in the Parquet files."""
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[ScanReport], tuple[()]]:
        """A scan that is sent elsewhere counts from the beginning."""
        return ScanReport, ()

    def opened(self, size_bytes: int) -> None:
        """One more file."""
        with self._lock:
            self.files_read += 1
            self.file_bytes += size_bytes

    def picked(self, groups: int, of: int, size_bytes: int) -> None:
        """So many row groups of one file, and how much of them."""
        with self._lock:
            self.row_groups += of
            self.row_groups_read += groups
            self.bytes_read += size_bytes
