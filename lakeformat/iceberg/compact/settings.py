# SPDX-License-Identifier: Apache-2.0
"""The settings of a compaction, with the names and defaults of Java's rewrite_data_files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import int_property
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Partitions
from lakeformat.types.closest import closest

__all__ = [
    "TARGET_PROPERTY",
    "CompactOptions",
    "CompactSettings",
    "Wanted",
    "compact_settings",
    "wanted_files",
]

TARGET_PROPERTY = "write.target-file-size-bytes"
_DEFAULT_TARGET = 512 << 20
_LEAST, _MOST = 0.75, 1.8
"""The sizes of files that need no rewrite, as parts of the target size."""
_MOST_GROUP = 100 << 30
_STRATEGIES: Mapping[str, tuple[int, int | None]] = {
    "minor": (5, None),
    "binpack": (5, None),
    "full": (2, 1),
}
"""The least number of files that are joined, and the number of delete files that makes a data file
due.
"""
_OF_PAIMON = {
    "buckets": "choose files with where or partitions",
    "idle": "choose partitions with where or partitions",
    "order_by": "run CALL system.rewrite_data_files in Spark with strategy => 'sort'",
    "order_strategy": "leave it out",
}
"""Options that only Paimon tables have, and the advice for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactOptions:
    """The options of a caller; None stands for the default."""

    strategy: str = "minor"
    target_file_bytes: int | None = None
    min_file_bytes: int | None = None
    max_file_bytes: int | None = None
    max_group_bytes: int | None = None
    min_input_files: int | None = None
    delete_file_threshold: int | None = None
    delete_ratio_threshold: float = 0.3
    rewrite_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    """The rules that choose files and groups."""

    target_bytes: int
    min_bytes: int
    max_bytes: int
    max_group_bytes: int
    min_input_files: int
    delete_file_threshold: int | None
    """The number of delete files that makes a data file due; None for no limit."""
    delete_ratio_threshold: float
    rewrite_all: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """The files that a caller wants to compact, and how."""

    options: CompactOptions
    where: Where | None = None
    partitions: Partitions | None = None


def wanted_files(
    where: Where | None, partitions: Partitions | None, options: Mapping[str, Any]
) -> Wanted:
    """Return the wish of a caller; raise for an option that Iceberg tables do not have."""
    known = [each.name for each in fields(CompactOptions)]
    for name, value in options.items():
        if name in _OF_PAIMON:
            if value is not None:
                raise UnsupportedError(
                    f"the compaction of Iceberg tables does not take {name}: {_OF_PAIMON[name]}"
                )
        elif name not in known:
            raise InvalidRequestError(
                f"compact has no option {name!r}{closest(name, known)}: the options are "
                f"{', '.join(known)}"
            )
    given = {name: value for name, value in options.items() if name not in _OF_PAIMON}
    return Wanted(CompactOptions(**given), where, partitions)


def compact_settings(metadata: TableMetadata, options: CompactOptions) -> CompactSettings:
    """Return the settings of a compaction; raise if the options do not fit together."""
    if options.strategy not in _STRATEGIES:
        raise UnsupportedError(
            f"this version compacts Iceberg tables with the strategies {', '.join(_STRATEGIES)}, "
            f"got {options.strategy!r}: use one of these, or run CALL system.rewrite_data_files in "
            "Spark with strategy => 'sort'"
        )
    files, deletes = _STRATEGIES[options.strategy]
    target = options.target_file_bytes
    if target is None:
        target = int_property(metadata.properties, TARGET_PROPERTY, _DEFAULT_TARGET)
    least, most = options.min_file_bytes, options.max_file_bytes
    found = CompactSettings(
        target_bytes=target,
        min_bytes=int(target * _LEAST) if least is None else least,
        max_bytes=int(target * _MOST) if most is None else most,
        max_group_bytes=_MOST_GROUP if options.max_group_bytes is None else options.max_group_bytes,
        min_input_files=files if options.min_input_files is None else options.min_input_files,
        delete_file_threshold=(
            deletes if options.delete_file_threshold is None else options.delete_file_threshold
        ),
        delete_ratio_threshold=options.delete_ratio_threshold,
        rewrite_all=options.rewrite_all,
    )
    _check(found)
    return found


def _check(settings: CompactSettings) -> None:
    least, target, most = settings.min_bytes, settings.target_bytes, settings.max_bytes
    if not 0 <= least < target < most:
        raise InvalidRequestError(
            f"the sizes must ascend: min_file_bytes ({least:,}), target_file_bytes ({target:,}), "
            f"max_file_bytes ({most:,}). Change the one that does not fit"
        )
    counts = {
        "max_group_bytes": settings.max_group_bytes,
        "min_input_files": settings.min_input_files,
        "delete_file_threshold": settings.delete_file_threshold,
    }
    for name, value in counts.items():
        if value is not None and value < 1:
            raise InvalidRequestError(f"{name} must be at least 1, got {value}")
    if not 0 < settings.delete_ratio_threshold <= 1:
        raise InvalidRequestError(
            "delete_ratio_threshold must be more than 0 and at most 1, got "
            f"{settings.delete_ratio_threshold}"
        )
