# SPDX-License-Identifier: Apache-2.0
"""Finds the delete files that apply to a data file.

A position delete applies to data files of its partition with the same or a lower sequence number. A
deletion vector replaces all position deletes of its data file. An equality delete applies to data
files of its partition with a lower sequence number. If its spec is unpartitioned, it applies in all
partitions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.files.file_format import FileFormat
from lakeformat.iceberg.metadata.manifest import EQUALITY_DELETES, PUFFIN
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.data_file import DataFile, DeleteFile
from lakeformat.iceberg.read.entry_columns import EntryColumns, is_unpartitioned, scopes
from lakeformat.iceberg.read.key_ranges import KeyRanges, ranges_of
from lakeformat.iceberg.types import Field

__all__ = ["EVERYWHERE", "FILE_PATH_ID", "DeleteIndex", "file_format"]

EVERYWHERE = ""
"""The scope of equality deletes that apply to all partitions."""
FILE_PATH_ID = 2_147_483_546
_REMEDY = "roll the table back to an earlier snapshot, or restore its manifests from a backup"
_FILE_COLUMNS = (
    "content",
    "file_path",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "sequence_number",
    "equality_ids",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


@dataclass(slots=True)
class _DeletesBySequence:
    files: list[DeleteFile] = field(default_factory=list)
    ranges: list[KeyRanges | None] = field(default_factory=list)

    def sort(self) -> None:
        order = sorted(range(len(self.files)), key=lambda at: self.files[at].sequence_number)
        self.files = [self.files[at] for at in order]
        self.ranges = [self.ranges[at] for at in order]

    def from_number(self, number: int) -> list[DeleteFile]:
        return self.files[bisect_left(self.files, number, key=_number) :]

    def after(self, number: int, rows: KeyRanges) -> list[DeleteFile]:
        """Return the delete files whose sequence number is higher than ``number``, and which may
        have a key within ``rows``.
        """
        first = bisect_right(self.files, number, key=_number)
        pairs = zip(self.files[first:], self.ranges[first:], strict=True)
        return [each for each, keys in pairs if keys is None or keys.may_meet(rows)]


@dataclass(slots=True)
class DeleteIndex:
    """The delete files of a snapshot, found by the data files or partitions to which they apply."""

    fields: Mapping[int, Field]
    """All columns of the table, to decode the bounds of keys."""
    _vectors: dict[str, DeleteFile] = field(default_factory=dict)
    _of_files: dict[str, _DeletesBySequence] = field(default_factory=dict)
    _positions: dict[str, _DeletesBySequence] = field(default_factory=dict)
    _equality: dict[str, _DeletesBySequence] = field(default_factory=dict)
    key_ids: frozenset[int] = frozenset()
    """The ids of the columns that equality deletes compare."""
    files: int = 0
    """The number of delete files."""

    @property
    def data_files(self) -> set[str] | None:
        """The URIs of the data files to which deletes apply; None if they may apply to any file."""
        return None if self._positions or self._equality else {*self._vectors, *self._of_files}

    def add(self, entries: pa.Table, spec: PartitionSpec) -> None:
        """Add the delete files of one partition spec.

        Raise ``CorruptTableError`` for entries that contradict each other, and ``UnsupportedError``
        for an unknown file format.
        """
        places = scopes(entries)
        everywhere = is_unpartitioned(spec)
        statistics = EntryColumns(entries)
        paths = zip(
            statistics.statistic("lower_bounds", FILE_PATH_ID).to_pylist(),
            statistics.statistic("upper_bounds", FILE_PATH_ID).to_pylist(),
            strict=True,
        )
        rows = entries.select(_FILE_COLUMNS).to_pylist()
        ids = frozenset(each for row in rows for each in row["equality_ids"] or ())
        self.key_ids |= ids
        self.files += len(rows)
        ranges = ranges_of(statistics, [self.fields[each] for each in ids if each in self.fields])
        for row, scope, path, keys in zip(rows, places, paths, ranges, strict=True):
            if row["content"] == EQUALITY_DELETES:
                scope = EVERYWHERE if everywhere else scope
                listed = self._equality.setdefault(scope, _DeletesBySequence())
                file = _delete_file(row, scope, None)
                listed.ranges.append(keys.only(file.equality_ids))
            else:
                file = _delete_file(row, scope, _data_file(row, *path))
                listed = self._place_of(file)
                listed.ranges.append(None)
            listed.files.append(file)

    def sort(self) -> None:
        """Prepare the index for ``find``; call this after the last ``add``."""
        for group in (self._of_files, self._positions, self._equality):
            for each in group.values():
                each.sort()

    def find(self, file: DataFile, scope: str, rows: KeyRanges) -> tuple[DeleteFile, ...]:
        """Return the delete files that apply to a data file.

        ``scope`` is the text for the partition spec and the partition of the file. An equality
        delete is left out if none of its keys can be within ``rows``, the ranges of the file's
        values. Raise ``CorruptTableError`` if the deletion vector of the file is older than
        the file.
        """
        number = file.sequence_number
        found: list[DeleteFile] = []
        for each in (EVERYWHERE, scope):
            if each in self._equality:
                found += self._equality[each].after(number, rows)
        if (vector := self._vectors.get(file.path)) is not None:
            if vector.sequence_number < number:
                raise CorruptTableError(
                    f"the deletion vector of {file.path} has the sequence number "
                    f"{vector.sequence_number}, but must have at least {number}, the sequence "
                    f"number of the data file; {_REMEDY}"
                )
            return (*found, vector)
        for group, key in ((self._positions, scope), (self._of_files, file.path)):
            if key in group:
                found += group[key].from_number(number)
        return tuple(found)

    def _place_of(self, file: DeleteFile) -> _DeletesBySequence:
        if file.is_vector:
            if file.data_file is None:
                raise CorruptTableError(
                    f"a manifest lists the deletion vector at byte {file.content_offset} of "
                    f"{file.path} without its data file; {_REMEDY}"
                )
            if file.data_file in self._vectors:
                raise CorruptTableError(
                    f"manifests list more than one deletion vector of {file.data_file}: in "
                    f"{self._vectors[file.data_file].path} and in {file.path}; {_REMEDY}"
                )
            if file.content_offset < 0 or file.content_size <= 0:
                raise CorruptTableError(
                    f"a manifest lists the deletion vector of {file.data_file} at byte "
                    f"{file.content_offset} of {file.path} with {file.content_size} bytes, but "
                    f"the offset or the size is not valid; {_REMEDY}"
                )
            self._vectors[file.data_file] = file
            return _DeletesBySequence()
        if file.data_file is not None:
            return self._of_files.setdefault(file.data_file, _DeletesBySequence())
        return self._positions.setdefault(file.scope, _DeletesBySequence())


def file_format(written: str, path: str) -> FileFormat:
    """Return the file format that a manifest names; raise ``UnsupportedError`` if it is unknown."""
    try:
        return FileFormat(written.lower())
    except ValueError:
        known = ", ".join(FileFormat)
        raise UnsupportedError(
            f"{path} has the format {written!r}; this version reads {known}. Use the engine "
            "that wrote the file"
        ) from None


def _number(file: DeleteFile) -> int:
    return file.sequence_number


def _data_file(row: Mapping[str, Any], lower: bytes | None, upper: bytes | None) -> str | None:
    """Return the URI of the only data file to which a file of position deletes applies; None if
    there may be several.

    The URI is ``referenced_data_file`` in the manifest. If this value is missing, the URI is known
    only if the lower and the upper bound of the column ``file_path`` are equal.
    """
    if row["referenced_data_file"] is not None:
        return str(row["referenced_data_file"])
    if lower is None or lower != upper:
        return None
    try:
        return lower.decode()
    except UnicodeDecodeError:  # the bounds are not a path, so the data file is unknown
        return None


def _delete_file(row: Mapping[str, Any], scope: str, data_file: str | None) -> DeleteFile:
    path, written, ids = row["file_path"], row["file_format"], tuple(row["equality_ids"] or ())
    is_equality = row["content"] == EQUALITY_DELETES
    if is_equality is not bool(ids):
        raise CorruptTableError(
            f"a manifest lists {path} with the content {row['content']} and the equality ids "
            f"{list(ids)}, which do not fit together; {_REMEDY}"
        )
    return DeleteFile(
        path,
        None if written == PUFFIN and not is_equality else file_format(written, path),
        row["record_count"],
        row["file_size_in_bytes"],
        row["sequence_number"],
        scope,
        ids,
        data_file,
        row["content_offset"] or 0,
        row["content_size_in_bytes"] or 0,
    )
