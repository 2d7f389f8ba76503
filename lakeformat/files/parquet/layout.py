"""How the rows of a Parquet file are stored: the same for all of its row groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.files.file_writer import FileSettings

__all__ = ["ParquetLayout"]


@dataclass(frozen=True, slots=True)
class ParquetLayout:
    """What a writer has to know beside the rows and where they go."""

    schema: pa.Schema
    """As the file has it: timestamps in 12 bytes are bytes."""
    settings: FileSettings
    dictionary_columns: Sequence[str]
    bounded: Sequence[str] | bool
    """The paths with bounds in the footer; True for all."""
    change_footer: Callable[[bytes], bytes] | None
    """What is done to the footer before it is written."""
