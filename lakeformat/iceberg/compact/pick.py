# SPDX-License-Identifier: Apache-2.0
"""Chooses the files of one partition that are rewritten together, by the rules of Java.

A file is due if its size is far from the target size, or if it has many deleted rows or delete
files. Due files are put into groups. A group is rewritten if that makes fewer files, splits large
ones or removes deleted rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakeformat.iceberg.compact.settings import CompactSettings
from lakeformat.iceberg.read.planned_files import PlannedFile
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["FileGroup", "expected_files", "file_groups"]

_MOST_ABOVE_TARGET = 1.1
"""The bytes after the last full file may be too few for another file. Then they are spread over the
full files, if the average size remains below the target size times this factor.
"""


@dataclass(frozen=True, slots=True)
class FileGroup:
    """A group of due files, and the reason why it is rewritten or not."""

    files: tuple[PlannedFile, ...]
    is_chosen: bool
    reason: str

    @property
    def bytes(self) -> int:
        """The size of all files of the group, in bytes."""
        return sum(each.bytes for each in self.files)


def file_groups(files: Sequence[PlannedFile], settings: CompactSettings) -> Iterator[FileGroup]:
    """Yield the due files of one partition in groups; only groups with ``is_chosen`` are rewritten.

    All files are due if ``settings.rewrite_all`` is set.
    """
    due = [each for each in files if settings.rewrite_all or _is_due(each, settings)]
    for group in _packed(due, settings.max_group_bytes):
        reason = _reason(group, settings)
        yield FileGroup(tuple(group), reason is not None, reason or _too_few(group, settings))


def expected_files(size_bytes: int, settings: CompactSettings) -> int:
    """Return the number of new files for ``size_bytes`` of old files, as Java calculates it."""
    total, target = int(size_bytes * settings.compression_factor), settings.target_bytes
    whole, remainder = divmod(total, target)
    if not whole:
        return 1
    if remainder > settings.min_bytes:  # the remainder is large enough for a file of its own
        return whole + 1
    is_small = total / whole < min(_MOST_ABOVE_TARGET * target, settings.largest_bytes)
    return whole if is_small else -(-total // target)


def _is_due(file: PlannedFile, settings: CompactSettings) -> bool:
    is_of_other_size = not settings.min_bytes <= file.bytes <= settings.max_bytes
    return is_of_other_size or _has_many_deletes(file, settings)


def _has_many_deletes(file: PlannedFile, settings: CompactSettings) -> bool:
    most = settings.delete_file_threshold
    has_many_files = most is not None and len(file.split.deletes) >= most
    return has_many_files or _deleted_ratio(file) >= settings.delete_ratio_threshold


def _deleted_ratio(file: PlannedFile) -> float:
    """Return the share of deleted rows in a file, from 0.0 to 1.0.

    Delete files that may apply to several data files are not counted.
    """
    rows = file.split.file.record_count
    if not rows:
        return 0.0
    deleted = sum(each.record_count for each in file.split.deletes if each.data_file is not None)
    return min(deleted, rows) / rows


def _packed(files: Sequence[PlannedFile], most: int) -> Iterator[list[PlannedFile]]:
    """Yield groups of consecutive files with at most ``most`` bytes; a larger file is a group
    of its own.
    """
    group: list[PlannedFile] = []
    total = 0
    for file in files:
        if group and total + file.bytes > most:
            yield group
            group, total = [], 0
        group.append(file)
        total += file.bytes
    if group:
        yield group


def _reason(group: Sequence[PlannedFile], settings: CompactSettings) -> str | None:
    """Return the reason why a group is rewritten; None if it is not rewritten."""
    total, count = sum(each.bytes for each in group), len(group)
    if settings.rewrite_all:
        return "all files are rewritten"
    if 1 < count >= settings.min_input_files:
        return f"{counted(count, 'file')}, at least min_input_files={settings.min_input_files}"
    if count > 1 and total > settings.target_bytes:
        return f"together they fill a file of {size(settings.target_bytes)}"
    if total > settings.max_bytes:
        return f"{size(total)} is more than max_file_bytes"
    if many := sum(_has_many_deletes(each, settings) for each in group):
        return f"{counted(many, 'file')} with many deletes"
    return None


def _too_few(group: Sequence[PlannedFile], settings: CompactSettings) -> str:
    found = f"only {counted(len(group), 'small file')}"
    if len(group) >= settings.min_input_files:
        return f"{found}, which would become one file again"
    return f"{found}, fewer than min_input_files={settings.min_input_files}"
