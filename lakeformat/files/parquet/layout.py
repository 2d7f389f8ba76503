"""The storage settings of a Parquet file: the same for all of its row groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.files.file_writer import FileSettings

__all__ = ["ParquetLayout"]


@dataclass(frozen=True, slots=True)
class ParquetLayout:
    """The settings of a writer besides the rows and the target."""

    schema: pa.Schema
    """The schema in the file: timestamps of 12 bytes are bytes."""
    settings: FileSettings
    dictionary_columns: Sequence[str]
    bounded: Sequence[str] | bool
    """The paths with bounds in the footer; True for all."""
    change_footer: Callable[[bytes], bytes] | None
    """Changes the footer before it is written."""
