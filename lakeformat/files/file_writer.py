"""What writing one file is, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from lakeformat.files.column_statistics import ColumnStatistics, StatisticsMode
from lakeformat.types.types import DataField

__all__ = ["FileContent", "FileSettings", "FileWriter"]


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Settings of the files of one writer."""

    compression: str
    """Its name in options; each format calls it its own."""
    zstd_level: int
    target_bytes: int
    has_dictionaries: bool
    """True if Parquet files encode columns that repeat values by a dictionary."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The columns of the files of one writer, and what is wanted of each."""

    fields: tuple[DataField, ...]
    modes: Sequence[StatisticsMode]
    settings: FileSettings
    key_columns: tuple[str, ...] = ()
    """What an error names a row by."""
    repeated: Mapping[str, str] = field(default_factory=dict)
    """Columns that hold the same as one before, with its name: Parquet encodes them once."""


class FileWriter(Protocol):
    """Writes one file into a stream that somebody else opens and closes."""

    @property
    def size(self) -> int:
        """Bytes written so far; what is still held in memory does not count."""
        ...

    def write(self, rows: pa.Table) -> None:
        """Add rows, at least one, with exactly the columns, in the Arrow types of the table."""
        ...

    def close(self) -> list[ColumnStatistics]:
        """Write what is left; exact statistics of each column, as far as they are wanted."""
        ...

    def discard(self) -> None:
        """Write nothing more, not even when this object goes: its stream is about to."""
        ...
