# SPDX-License-Identifier: Apache-2.0
"""Reads the keys of rows in new files, and keys to delete, in parts that fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.files.file_format import FileFormat
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.read.condition_fields import condition_fields
from lakeformat.iceberg.read.data_file import DataFile, FileSplit
from lakeformat.iceberg.read.equality_keys import EqualityKeys
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.row_changes.given_changes import NumberedRows, keys_of
from lakeformat.iceberg.row_changes.key_values import KeyValues
from lakeformat.iceberg.types import Field
from lakeformat.rows.conditions.predicate import And, Predicate
from lakeformat.rows.spill import SpillSettings
from lakeformat.tables.row_checks.repeated_values import RepeatedValues

__all__ = ["FileKeys"]

_MOST_ROWS = 4 << 20
"""Files are read together up to this number of keys; a file with more keys is read alone."""


class FileKeys:
    """The keys of files that are not published yet, and keys of rows to delete.

    The object can be pickled, so that workers read the keys.
    """

    def __init__(
        self,
        loaded: LoadedMetadata,
        entries: pa.Table,
        fields: Sequence[Field],
        deleted: Sequence[pa.Table] = (),
    ) -> None:
        metadata = loaded.metadata
        self._scan = Scan(TableState(loaded.places, metadata, None, metadata.schema))
        self._schema = metadata.schema
        self.fields = tuple(fields)
        self._parts: list[Sequence[FileSplit | pa.RecordBatch]] = [*_parts(_splits(entries))]
        self._parts += [batches for each in deleted if (batches := self._keys(each))]
        self._last: tuple[int, EqualityKeys] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}

    def condition(self) -> Predicate:
        """Read all keys; return a condition that every key meets.

        Raise ``InvalidRequestError`` if a key is null or repeated. Memory is bounded: keys that do
        not fit are written to temporary files.
        """
        names = [each.name for each in self.fields]
        columns = {each.name: each for each in condition_fields(self._schema)}
        repeated = RepeatedValues([columns[name] for name in names], SpillSettings())
        values, rows = [KeyValues(each) for each in self.fields], 0
        for batch in self._batches(split for part in self._parts for split in part):
            for column, found in zip(batch.columns, values, strict=True):
                found.add(column)
            repeated.add(batch)
            rows += batch.num_rows
        repeated.finish()
        if repeated.repeated_rows:
            raise InvalidRequestError(
                f"{repeated.repeated_rows} of {rows} rows have a key that another row has, too, "
                f"such as {'; '.join(repeated.examples)}: keep one row of each key"
            )
        return And(tuple(each.condition() for each in values))

    def parts(self) -> Iterator[EqualityKeys]:
        """Yield the keys in parts that fit into memory.

        If there is only one part, it is cached for the next call.
        """
        for number, splits in enumerate(self._parts):
            last = self._last
            if last is None or last[0] != number:
                batches = pa.Table.from_batches(self._batches(splits)).combine_chunks()
                columns = [column.combine_chunks() for column in batches.columns]
                last = number, EqualityKeys(columns, np.zeros(len(batches), np.int64))
                self._last = last
            yield last[1]

    def _keys(self, deleted: pa.Table) -> list[pa.RecordBatch]:
        """Return the keys in ``deleted`` with the current types of their columns in the table."""
        rows = (NumberedRows(each, range(len(each))) for each in deleted.to_batches())
        found: list[pa.RecordBatch] = keys_of(self._schema, self.fields, rows).to_batches()
        return found

    def _batches(self, parts: Iterable[FileSplit | pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            if isinstance(part, pa.RecordBatch):
                yield part
                continue
            for batch in self._scan.read_fields(part, self.fields):
                self._require_values(batch, part)
                yield batch

    def _require_values(self, batch: pa.RecordBatch, split: FileSplit) -> None:
        for each in self.fields:
            if batch.column(each.name).null_count:
                raise InvalidRequestError(
                    f"column {each.name!r} is a key, but {split.file.path} has rows with a null "
                    "there. Fill in a value, or drop these rows"
                )


def _splits(entries: pa.Table) -> Iterator[FileSplit]:
    names = ("file_path", "record_count", "file_size_in_bytes")
    for path, rows, size in zip(*(entries[each].to_pylist() for each in names), strict=True):
        yield FileSplit(None, DataFile(path, FileFormat.PARQUET, rows, size, 0))


def _parts(splits: Iterator[FileSplit]) -> Iterator[list[FileSplit]]:
    part: list[FileSplit] = []
    rows = 0
    for split in splits:
        more = split.file.record_count or 0
        if part and rows + more > _MOST_ROWS:
            yield part
            part, rows = [], 0
        part.append(split)
        rows += more
    if part:
        yield part
