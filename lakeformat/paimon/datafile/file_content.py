"""Describes the data files of a table, from its columns and options."""

from __future__ import annotations

from collections.abc import Container, Sequence

from lakeformat.files.column_statistics import Detail, StatisticsMode
from lakeformat.files.file_writer import FileContent, FileSettings
from lakeformat.paimon.datafile.system_fields import is_system_column
from lakeformat.paimon.options import TableOptions
from lakeformat.types.types import DataField

__all__ = ["column_modes", "file_content"]

KEY_MODE = StatisticsMode(Detail.BOUNDS, 128)


def file_content(
    fields: tuple[DataField, ...],
    options: TableOptions,
    *,
    modes: Sequence[StatisticsMode] | None = None,
    key_columns: tuple[str, ...] = (),
) -> FileContent:
    """Describe the files of one writer; ``modes`` are those of the options unless given."""
    settings = FileSettings(
        compression=options.file_compression,
        zstd_level=options.file_compression_zstd_level,
        target_bytes=options.target_file_size_bytes,
        has_dictionaries=options.parquet_enable_dictionary,
    )
    names = [field.name for field in fields]
    return FileContent(fields, modes or column_modes(names, options), settings, key_columns)


def column_modes(
    columns: Sequence[str], options: TableOptions, *, key_columns: Container[str] = ()
) -> list[StatisticsMode]:
    """The mode of each column of a file, in order.

    System columns, and key columns that stand in for theirs, keep what keys are compared by.
    They do not count among the leading columns that have statistics, those set by name do.
    """
    default = StatisticsMode.parse(options.statistics_mode)
    limit, counted = options.statistics_keep_first_n_columns, 0
    modes = []
    for column in columns:
        own = options.of_column(type(options).column_statistics_mode, column)
        if own is not None:
            modes.append(StatisticsMode.parse(own))
        elif is_system_column(column) or column in key_columns:
            modes.append(KEY_MODE)
            continue
        elif 0 <= limit <= counted:
            modes.append(StatisticsMode(Detail.NONE))
        else:
            modes.append(default)
        counted += 1
    return modes
