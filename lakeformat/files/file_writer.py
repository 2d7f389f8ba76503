# SPDX-License-Identifier: Apache-2.0
"""The interface of the writers of one file, for all formats."""

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
    """The name of the compression in table options; ``codecs.py`` has the name in each format."""
    zstd_level: int
    target_bytes: int
    has_dictionaries: bool
    """True if Parquet files may store columns with repeated values as a dictionary."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The columns of the files of one writer, and the settings of the files."""

    fields: tuple[DataField, ...]
    modes: Sequence[StatisticsMode]
    settings: FileSettings
    key_columns: tuple[str, ...] = ()
    """The columns whose values name a row in errors."""
    repeated: Mapping[str, str] = field(default_factory=dict)
    """For each column that repeats the values of an earlier column, the name of the earlier column.

    Parquet encodes the values only once.
    """


class FileWriter(Protocol):
    """Writes one file into a stream that the caller opens and closes."""

    @property
    def size(self) -> int:
        """The number of bytes written so far; rows that are still in memory are not counted."""
        ...

    def write(self, rows: pa.Table) -> None:
        """Add one or more rows, which have the Arrow types of the table."""
        ...

    def close(self) -> list[ColumnStatistics]:
        """Write the rows in memory and the end of the file; return exact statistics of each column.

        Bounds that ``FileContent.modes`` does not ask for are unknown.
        """
        ...

    def discard(self) -> None:
        """Discard the rows in memory: nothing more is written to the stream, which the caller
        closes next.
        """
        ...
