# SPDX-License-Identifier: Apache-2.0
"""The numbers that control a compaction, with the defaults of Java's rewrite_data_files."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.compact.options import STRATEGIES, CompactOptions
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import int_property

__all__ = ["TARGET_PROPERTY", "CompactSettings", "compact_settings"]

TARGET_PROPERTY = "write.target-file-size-bytes"
_DEFAULT_TARGET = 512 << 20
_LEAST, _MOST = 0.75, 1.8
"""The defaults of ``min_bytes`` and ``max_bytes``, as multiples of the target size."""
_MOST_GROUP = 100 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    """The numbers by which files and groups are chosen."""

    target_bytes: int
    min_bytes: int
    max_bytes: int
    max_group_bytes: int
    min_input_files: int
    delete_file_threshold: int | None
    """A data file with at least this many delete files is due; if None, the number is ignored."""
    delete_ratio_threshold: float
    rewrite_all: bool
    compression_factor: float = 1.0

    @property
    def largest_bytes(self) -> int:
        """The size at which a sorted new file is closed: halfway between the target and
        ``max_bytes``.
        """
        return self.target_bytes + (self.max_bytes - self.target_bytes) // 2


def compact_settings(metadata: TableMetadata, options: CompactOptions) -> CompactSettings:
    """Return the settings from the options; an option that is None gets its default.

    The default of the target size is a table property, if set. Raise ``InvalidRequestError`` for a
    number out of range, or if ``min_bytes`` < ``target_bytes`` < ``max_bytes`` does not hold.
    """
    factor = options.compression_factor
    files, deletes = STRATEGIES[options.strategy or "minor"]
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
        compression_factor=1.0 if factor is None else factor,
    )
    _check(found)
    return found


def _check(settings: CompactSettings) -> None:
    least, target, most = settings.min_bytes, settings.target_bytes, settings.max_bytes
    if not 0 <= least < target < most:
        raise InvalidRequestError(
            f"the sizes must ascend from 0: min_file_bytes ({least:,}), target_file_bytes "
            f"({target:,}), max_file_bytes ({most:,}). Change the one that does not fit"
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
