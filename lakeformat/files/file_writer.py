# SPDX-License-Identifier: Apache-2.0
"""The interface of writers of one file, for every format."""

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
    """The name in options; each format has its own name for it."""
    zstd_level: int
    target_bytes: int
    has_dictionaries: bool
    """True if Parquet files encode columns with repeated values by a dictionary."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The columns of the files of one writer, and the settings of each."""

    fields: tuple[DataField, ...]
    modes: Sequence[StatisticsMode]
    settings: FileSettings
    key_columns: tuple[str, ...] = ()
    """The columns that identify a row in errors."""
    repeated: Mapping[str, str] = field(default_factory=dict)
    """Columns that repeat an earlier column, with the name of that column: Parquet encodes it
    once.
    """


class FileWriter(Protocol):
    """Writes one file into a stream that the caller opens and closes."""

    @property
    def size(self) -> int:
        """The number of bytes written so far, without the bytes that are still in memory."""
        ...

    def write(self, rows: pa.Table) -> None:
        """Add at least one row with exactly the columns, in the Arrow types of the table."""
        ...

    def close(self) -> list[ColumnStatistics]:
        """Write the rest; return exact statistics of each column, as far as requested."""
        ...

    def discard(self) -> None:
        """Write nothing more, even when this object is deleted: the caller is about to close its
        stream.
        """
        ...
