# SPDX-License-Identifier: Apache-2.0
"""Finds the deleted rows of data files: by position deletes, deletion vectors and equality deletes.

A delete file is read when the first data file needs it. Equality deletes of a partition are read
only once for a scan if the data files of the partition are read one after the other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from threading import RLock
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError
from lakeformat.files.data_file import KeepRows, naming_file
from lakeformat.files.deletion_vector import DeletionVector, keep_mask
from lakeformat.files.vector_record import DeletionVectorRange, decode_deletion_vector
from lakeformat.iceberg.arrow_types import to_arrow_field, to_arrow_type
from lakeformat.iceberg.read.data_file import DataFile, DeleteFile, FileSplit
from lakeformat.iceberg.read.equality_keys import EqualityKeys
from lakeformat.iceberg.read.file_rows import FileRows
from lakeformat.iceberg.read.key_columns import (
    key_column,
    key_type,
    key_values,
    optional_column,
    required_column,
)
from lakeformat.iceberg.read.stored_fields import MappedName, NameMapping
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.rows.prune import Mask

__all__ = ["DELETED_POSITION", "FILE_PATH", "DeletedRows", "EqualityDeletes", "read_fields"]

FILE_PATH = Field(2_147_483_546, "file_path", PrimitiveType("string"), required=True)
DELETED_POSITION = Field(2_147_483_545, "pos", PrimitiveType("long"), required=True)
_POSITION_NAMES = {each.name: MappedName(each.id, {}) for each in (FILE_PATH, DELETED_POSITION)}
"""The column names of position deletes, for files without field ids."""
_REMEDY = "restore the file from a backup or roll the table back to an earlier snapshot"
_KEPT_FILES = 16
"""The number of position delete files whose content is cached for the next data file."""

_KEPT_SCOPES = 8
"""The number of scopes whose equality deletes are cached; a scope is one partition, or all of them.
"""
_K = TypeVar("_K")
_V = TypeVar("_V")

_ScopeKey: TypeAlias = tuple[str, tuple[int, ...]]
"""The scope of equality deletes, and the ids of the columns that they compare."""


@dataclass(frozen=True, slots=True)
class EqualityDeletes:
    """The keys of equality deletes that compare the same columns, in one partition or in all."""

    fields: Mapping[int, Field]
    """The columns that contain the keys, by the field ids of the keys."""
    keys: EqualityKeys

    def deleted(
        self, rows: pa.RecordBatch, places: Mapping[int, int], sequence_number: int
    ) -> Mask:
        """Return a mask of ``rows``, which is True for the rows that these keys delete.

        ``places`` has the index of each column of ``rows`` by field id. ``sequence_number`` is that
        of the data file.
        """
        # If the scan reads an older schema, its columns may have an earlier type.
        columns = [
            key_values(rows.column(places[each])).cast(to_arrow_type(key_type(column)))
            for each, column in self.fields.items()
        ]
        return self.keys.deleted(columns, sequence_number)


def read_fields(wanted: Iterable[Field], deletes: Iterable[EqualityDeletes]) -> dict[int, Field]:
    """Return the columns to read, by their ids: the wanted columns, then those that keys need."""
    fields = {each.id: each for each in wanted}
    names = {each.name for each in fields.values()}
    keys = [each for delete in deletes for each in delete.fields.items()]
    # Another column may now have the name of a key column, so the key gets a name of its own.
    return fields | {
        each: replace(column, name=_free_name(f"_key_{each}", names))
        for each, column in keys
        if each not in fields
    }


def _free_name(name: str, taken: Set[str]) -> str:
    return _free_name(f"_{name}", taken) if name in taken else name


@dataclass(slots=True)
class DeletedRows:
    """The delete files of a scan, read when they are needed."""

    files: FileRows
    schemas: Sequence[Schema]
    """All schemas of the table, the current one first."""
    _scopes: dict[_ScopeKey, dict[str, DeleteFile]] = field(default_factory=dict)
    _equality: OrderedDict[_ScopeKey, EqualityDeletes] = field(default_factory=OrderedDict)
    _positions: OrderedDict[str, dict[str, npt.NDArray[np.int64]]] = field(
        default_factory=OrderedDict
    )
    _lock: RLock = field(default_factory=RLock, repr=False)
    """Held while a delete file is looked up or read, because threads may read splits in
    parallel."""

    def expect(self, splits: Iterable[FileSplit]) -> None:
        """Register the equality deletes of ``splits``.

        So all equality deletes of one partition are read together.
        """
        listed = (each for split in splits for each in split.deletes if each.equality_ids)
        with self._lock:
            for each in listed:
                known = self._scopes.setdefault((each.scope, each.equality_ids), {})
                if each.path not in known:
                    known[each.path] = each
                    self._equality.pop((each.scope, each.equality_ids), None)

    def equality(self, split: FileSplit) -> list[EqualityDeletes]:
        """Return the equality deletes that apply to the data file of a split.

        Raise ``CorruptTableError`` if the schemas lack a column that the deletes compare.
        """
        self.expect([split])
        needed = dict.fromkeys(
            (each.scope, each.equality_ids) for each in split.deletes if each.equality_ids
        )
        with self._lock:
            return [_kept(self._equality, scope, self._keys, _KEPT_SCOPES) for scope in needed]

    def keep(self, split: FileSplit) -> KeepRows | None:
        """Return a function that returns a mask of the rows that are not deleted by position.

        None means that no row is deleted by position. Raise the same errors as ``vector``.
        """
        vector = self.vector(split)
        return None if vector is None else partial(keep_mask, vector)

    def vector(self, split: FileSplit) -> DeletionVector | None:
        """Return the positions of rows deleted by position deletes or by a deletion vector.

        None means that no row is deleted by position. Raise ``CorruptTableError`` for a damaged
        delete file, or for a position after the last row.
        """
        merged: DeletionVector | None = None
        for each in split.deletes:
            if each.equality_ids:
                continue
            if each.is_vector:
                vector = self._vector(each)
            elif (found := self._positions_of(each).get(split.file.path)) is not None:
                vector = DeletionVector.of(found)
            else:
                continue
            _require_rows(vector, each, split.file)
            merged = vector if merged is None else merged.merged(vector)
        return merged

    def _vector(self, file: DeleteFile) -> DeletionVector:
        storage, place = self.files.places.place(file.path)
        with naming_file(file.path), storage.open_input(place) as stream:
            stream.seek(file.content_offset)
            record = stream.read(file.content_size)
        found = DeletionVectorRange(
            file.data_file or file.path, file.content_offset, file.content_size, file.record_count
        )
        return decode_deletion_vector(
            record, found, file.path, remedy=_REMEDY, named_by="its manifest"
        )

    def _positions_of(self, file: DeleteFile) -> dict[str, npt.NDArray[np.int64]]:
        def read(_: str) -> dict[str, npt.NDArray[np.int64]]:
            found = self._read(file, (FILE_PATH, DELETED_POSITION), _POSITION_NAMES)
            if any(each.null_count for each in found.columns) or _has_negative(found):
                raise CorruptTableError(
                    f"{file.path} has a row without a file path, or with a missing or "
                    f"negative position; {_REMEDY}"
                )
            return _by_path(found)

        if file.data_file is not None:  # only this data file needs it
            return read(file.path)
        with self._lock:
            return _kept(self._positions, file.path, read, _KEPT_FILES)

    def _keys(self, scope: _ScopeKey) -> EqualityDeletes:
        fields = {each: self._key_column(each) for each in scope[1]}
        files = list(self._scopes[scope].values())
        # If a delete file lacked a key column, it would delete all rows with a null there. So
        # raise.
        stored = [required_column(each) for each in fields.values()]
        tables = [self._read(each, stored) for each in files]
        numbers = np.repeat(
            np.array([each.sequence_number for each in files], np.int64),
            [table.num_rows for table in tables],
        )
        keys = pa.concat_tables(tables)
        columns = [key_values(column.combine_chunks()) for column in keys.columns]
        return EqualityDeletes(fields, EqualityKeys(columns, numbers))

    def _key_column(self, field_id: int) -> Field:
        columns = (key_column(each, field_id) for each in self.schemas)
        found = next((each for each in columns if each is not None), None)
        if found is None:
            raise CorruptTableError(
                f"{self.files.places.uri} has equality deletes that compare the field {field_id}, "
                "but no schema of the table has a primitive column with this id, at the top level "
                "or inside of structs; restore the metadata file from a backup"
            )
        return optional_column(found)

    def _read(
        self, file: DeleteFile, fields: Sequence[Field], names: NameMapping | None = None
    ) -> pa.Table:
        assert file.format is not None
        files = self.files if names is None else replace(self.files, mapping=names)
        batches = files.read(file.path, file.format, fields, row_count=file.record_count)
        schema = pa.schema([to_arrow_field(each) for each in fields])
        return pa.Table.from_batches(batches, schema)


def _kept(known: OrderedDict[_K, _V], key: _K, read: Callable[[_K], _V], most: int) -> _V:
    """Return the value of a key from the cache ``known``, or read it.

    The cache keeps only the ``most`` values that were used last.
    """
    if key not in known:
        known[key] = read(key)
    known.move_to_end(key)
    while len(known) > most:
        known.popitem(last=False)
    return known[key]


def _require_rows(vector: DeletionVector, delete: DeleteFile, file: DataFile) -> None:
    count, positions = file.record_count, vector.positions
    if count is not None and positions and positions.max() >= count:
        raise CorruptTableError(
            f"{delete.path} deletes row {positions.max()} of {file.path}, which has {count} rows "
            "(rows count from 0); restore both files from a backup or roll the table back to an "
            "earlier snapshot"
        )


def _has_negative(deletes: pa.Table) -> bool:
    least = pc.min(deletes.column(DELETED_POSITION.name)).as_py()
    return least is not None and least < 0


def _by_path(deletes: pa.Table) -> dict[str, npt.NDArray[np.int64]]:
    paths = deletes.column(FILE_PATH.name).combine_chunks().dictionary_encode()
    positions = deletes.column(DELETED_POSITION.name).to_numpy()
    codes = paths.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(paths.dictionary)), side="right")
    pieces = np.split(positions[order], ends[:-1])
    return dict(zip(paths.dictionary.to_pylist(), pieces, strict=True))
