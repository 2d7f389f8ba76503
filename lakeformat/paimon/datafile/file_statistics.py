# SPDX-License-Identifier: Apache-2.0
"""Chooses the statistics of data files, and converts them to and from manifest entries."""

from __future__ import annotations

from collections.abc import Container, Sequence

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.files.column_statistics import (
    NO_STATISTICS,
    ColumnStatistics,
    Detail,
    StatisticsMode,
)
from lakeformat.paimon.binary_row import decode_row, encode_row, frame_row, unframe_row
from lakeformat.paimon.datafile.evolution import find_sources
from lakeformat.paimon.datafile.system_fields import KEY_PREFIX, SYSTEM_COLUMNS
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.simple_stats import SimpleStats
from lakeformat.paimon.options import TableOptions
from lakeformat.types.casts import cast_array, keeps_order
from lakeformat.types.count_text import counted
from lakeformat.types.types import AtomicType, DataField, DataType, with_nullability
from lakeformat.types.values import Value, values_from_arrow, values_to_arrow

__all__ = [
    "column_modes",
    "encode_statistics",
    "encode_value_statistics",
    "file_statistics",
    "key_statistics",
    "stored_statistics",
]


KEY_MODE = StatisticsMode(Detail.BOUNDS, 128)


def column_modes(
    columns: Sequence[str], options: TableOptions, *, key_columns: Container[str] = ()
) -> list[StatisticsMode]:
    """Return the statistics mode of each column of a file, in the order of ``columns``.

    A mode that the options set for a column has priority. Without it, a system or key column uses
    the mode that comparisons of keys need. Any other column uses the mode of the table if it is
    among the first N columns, where N is ``metadata.stats-keep-first-n-columns``. The columns after
    these get no statistics. System and key columns count among the first N only if the options set
    a mode for them.
    """
    default = StatisticsMode.parse(options.statistics_mode)
    limit, counted = options.statistics_keep_first_n_columns, 0
    modes = []
    for column in columns:
        own = options.of_column(type(options).column_statistics_mode, column)
        if own is not None:
            modes.append(StatisticsMode.parse(own))
        elif column.startswith(KEY_PREFIX) or column in SYSTEM_COLUMNS or column in key_columns:
            modes.append(KEY_MODE)
            continue
        elif 0 <= limit <= counted:
            modes.append(StatisticsMode(Detail.NONE))
        else:
            modes.append(default)
        counted += 1
    return modes


def encode_statistics(
    fields: Sequence[DataField], statistics: Sequence[ColumnStatistics]
) -> SimpleStats:
    """Return the statistics of all columns; a column without statistics has null bounds."""
    types = [with_nullability(field.type, nullable=True) for field in fields]
    lows = encode_row([column.minimum for column in statistics], types)
    highs = encode_row([column.maximum for column in statistics], types)
    counts = tuple(column.null_count for column in statistics)
    return SimpleStats(frame_row(lows, len(types)), frame_row(highs, len(types)), counts)


def encode_value_statistics(
    fields: Sequence[DataField], statistics: Sequence[ColumnStatistics], *, dense: bool
) -> tuple[SimpleStats, tuple[str, ...] | None]:
    """Return ``value_stats`` and ``value_stats_cols`` of a manifest entry.

    With ``dense`` the statistics omit the columns without statistics, and ``value_stats_cols``
    names the other columns. ``value_stats_cols`` is None if no column is omitted.
    """
    if not dense:
        return encode_statistics(fields, statistics), None
    known = [number for number, column in enumerate(statistics) if not column.is_none]
    kept = [fields[number] for number in known]
    encoded = encode_statistics(kept, [statistics[number] for number in known])
    covers_all = len(kept) == len(fields)
    return encoded, None if covers_all else tuple(field.name for field in kept)


def file_statistics(
    file: DataFileMeta, file_fields: Sequence[DataField], table_fields: Sequence[DataField]
) -> list[ColumnStatistics]:
    """Return the statistics in a file's manifest entry, converted to each of ``table_fields``.

    ``file_fields`` is the schema that the file was written with. A column that was added later has
    only nulls. If the type of a column was changed, its statistics are kept only if the cast to the
    new type keeps the order of the values. Raise CorruptTableError if the statistics do not fit
    ``file_fields``.
    """
    stored = stored_statistics(file, file_fields)
    found = []
    for source, wanted in zip(find_sources(file_fields, table_fields), table_fields, strict=True):
        if source is None:
            found.append(ColumnStatistics(null_count=file.row_count))
        else:
            known = stored.get(source.name, NO_STATISTICS)
            found.append(_evolved(known, source.type, wanted.type))
    return found


def key_statistics(file: DataFileMeta, key_fields: Sequence[DataField]) -> list[ColumnStatistics]:
    """Return the statistics of the key in a file's manifest entry, for each of ``key_fields``.

    Raise CorruptTableError if they are for another number of columns.
    """
    return _decode(file, file.key_stats, key_fields)


def stored_statistics(
    file: DataFileMeta, file_fields: Sequence[DataField]
) -> dict[str, ColumnStatistics]:
    """Return the statistics in a file's manifest entry, by column name.

    Raise CorruptTableError if they do not fit ``file_fields``, the schema that the file was written
    with.
    """
    names = file.value_stats_cols
    if names is None:
        names = file.write_cols
    by_name = {field.name: field for field in file_fields}
    if names is None:
        names = tuple(by_name)
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise CorruptTableError(
            f"the manifest has statistics of {file.file_name} for a column {unknown[0]!r}, which "
            f"schema {file.schema_id} does not have; roll the table back to an earlier snapshot"
        )
    covered = [by_name[name] for name in names]
    return dict(zip(names, _decode(file, file.value_stats, covered), strict=True))


def _decode(
    file: DataFileMeta, stats: SimpleStats, fields: Sequence[DataField]
) -> list[ColumnStatistics]:
    types = [with_nullability(field.type, nullable=True) for field in fields]
    counts = stats.null_counts or (None,) * len(types)
    lows = _decode_row(file, stats.min_values, types)
    highs = _decode_row(file, stats.max_values, types)
    if len(counts) != len(types):
        raise _damaged(file, counted(len(counts), "null count"), len(types))
    return [ColumnStatistics(*column) for column in zip(lows, highs, counts, strict=True)]


def _decode_row(file: DataFileMeta, framed: bytes, types: list[DataType]) -> tuple[Value, ...]:
    arity, row = unframe_row(framed)
    if arity != len(types):
        raise _damaged(file, f"bounds for {counted(arity, 'column')}", len(types))
    return decode_row(row, types)


def _damaged(file: DataFileMeta, found: str, expected: int) -> CorruptTableError:
    return CorruptTableError(
        f"the manifest has {found} of {file.file_name}, but it must have statistics of "
        f"{counted(expected, 'column')}; restore the manifest from a backup or roll the table back "
        "to an earlier snapshot"
    )


def _evolved(known: ColumnStatistics, stored: DataType, wanted: DataType) -> ColumnStatistics:
    if with_nullability(stored, nullable=True) == with_nullability(wanted, nullable=True):
        return known
    if not isinstance(stored, AtomicType) and type(stored) is type(wanted):
        return known  # A nested column has only a null count, which remains correct.
    if not keeps_order(stored, wanted):
        return NO_STATISTICS
    if known.minimum is None or known.maximum is None:
        return ColumnStatistics(null_count=known.null_count)
    ends = values_to_arrow([known.minimum, known.maximum], stored)
    try:
        low, high = values_from_arrow(cast_array(ends, stored, wanted), wanted)
    except InvalidRequestError:  # a read of the rows reports this damage
        return ColumnStatistics(null_count=known.null_count)
    return ColumnStatistics(low, high, known.null_count)
