"""What writing one file is, whatever its format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lakeformat.files.column_statistics import ColumnStatistics
from lakeformat.files.statistics_modes import StatisticsMode
from lakeformat.paimon.options import TableOptions
from lakeformat.types.types import DataField

__all__ = ["FileContent", "FileWriter"]


@dataclass(frozen=True, slots=True)
class FileContent:
    """The columns of the files of one writer, and what is wanted of each."""

    fields: tuple[DataField, ...]
    modes: Sequence[StatisticsMode]
    options: TableOptions
    key_columns: tuple[str, ...] = ()
    """What an error names a row by."""


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
