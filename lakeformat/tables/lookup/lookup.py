# SPDX-License-Identifier: Apache-2.0
"""Looks up rows of a table of any format by key, for streams that are joined with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.rows.conditions.predicate import And, Predicate, col
from lakeformat.rows.lossless_cast import cast_given
from lakeformat.rows.row_hashes import row_hashes
from lakeformat.tables.lookup.recent_rows import ID, RecentRows, rows_by_id
from lakeformat.tables.position import Position
from lakeformat.tables.scan_arguments import columns_named
from lakeformat.tables.table import Table, offer_arguments

__all__ = ["Lookup"]

_MOST_VALUES = 1000
"""The largest number of values that a condition on a key column lists. For more values, the
condition has only their minimum and maximum.

With more keys than this number, a scan of a Paimon table excludes no buckets.
"""
_ID_TYPE = pa.binary(16)
_MILLIS = 1000


@offer_arguments
class Lookup:
    """Rows of a table by key: ``get_many`` returns a row for each key, from memory if possible.

    ``columns`` are the columns of the result; None means all columns that the table has now.
    ``keys`` are the columns that identify a row; None means the primary key of the table, or the
    identifier fields of an Iceberg table.

    All rows are of one snapshot. The first call after ``reload_seconds`` looks for a newer
    snapshot; with 0, each call looks. A newer snapshot empties the memory. Between calls, memory
    holds the rows that were used last: at most ``max_rows`` rows and ``max_bytes`` bytes.
    ``environment`` has the clock. Several threads can use one object; their calls wait for each
    other.

    Raise ``InvalidRequestError`` for a table without a key if ``keys`` is None, for an unknown
    column, and for a number below its minimum.
    """

    def __init__(
        self,
        table: Table,
        columns: Sequence[str] | None = None,
        *,
        keys: Sequence[str] | None = None,
        reload_seconds: float = 60,
        max_rows: int = 100_000,
        max_bytes: int = 64 << 20,
        environment: Environment = SYSTEM,
    ) -> None:
        if not isinstance(table, Table):
            raise InvalidRequestError(
                f"a Lookup needs a table as lake.open_table returns it, got {table!r}"
            )
        _check_least("reload_seconds", reload_seconds, 0)
        _check_least("max_rows", max_rows, 1)
        _check_least("max_bytes", max_bytes, 1)
        self._table = table
        self._keys = _key_columns(table, keys)
        known = table.scan().schema
        self._columns = known.names if columns is None else [*_listed("columns", columns)]
        self._read_columns = [*dict.fromkeys([*self._keys, *self._columns])]
        read = table.scan(self._read_columns).schema
        self._types = {field.name: field.type for field in read}
        fields = [read.field(name).with_nullable(True) for name in self._columns]
        self._schema = pa.schema(fields)
        self._reload_millis = reload_seconds * _MILLIS
        self._environment = environment
        self._recent = RecentRows(
            pa.schema([pa.field(ID, _ID_TYPE), *fields]), max_rows=max_rows, max_bytes=max_bytes
        )
        self._position: Position | None = None
        self._looked_millis = 0
        self._scans = 0
        self._lock = Lock()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result; all of them may be null."""
        return self._schema

    @property
    def position(self) -> Position | None:
        """The position of the snapshot whose rows the last call returned; None before the first
        call.
        """
        return self._position

    @property
    def scans(self) -> int:
        """The number of scans of the table so far. A call of ``get_many`` makes at most one scan,
        or two if the snapshot has expired.
        """
        return self._scans

    @property
    def cached_rows(self) -> int:
        """The number of rows in memory. A key that the table lacks counts as a row, too."""
        return self._recent.num_rows

    @property
    def cached_bytes(self) -> int:
        """The bytes of the rows in memory."""
        return self._recent.nbytes

    def get_many(self, keys: pa.Table | pa.RecordBatch) -> pa.Table:
        """Return a row for each row of ``keys``, in the same order.

        A row has only nulls if the table lacks its key, or if a value of the key is null. ``keys``
        needs the key columns by their names; other columns are ignored. Rows that are not in memory
        are read in one scan.

        Raise ``InvalidRequestError`` if a key column is missing or repeated, if its type does not
        fit the table, or if the table has two rows of a key.
        """
        columns = self._given_columns(keys)
        ids, is_complete = _identities(columns)
        wanted = pc.unique(ids.filter(is_complete))
        with self._lock:
            self._look_for_newest()
            try:
                rows = self._rows_of(wanted, ids, columns)
            except NotFoundError:  # the snapshot has expired since it was looked for
                if not self._look_for_newest(is_due=True):
                    raise
                rows = self._rows_of(wanted, ids, columns)
        # A key with a null is not among the rows: it equals no key, also not another null.
        return rows.select(self._columns).take(pc.index_in(ids, value_set=rows.column(ID)))

    def _look_for_newest(self, *, is_due: bool = False) -> bool:
        """Switch to the newest snapshot, and return True if the snapshot has changed.

        The first call looks for the newest snapshot. A later call looks only with ``is_due``, or if
        ``reload_seconds`` have passed; else it returns False.
        """
        now = self._environment.now_millis()
        age = now - self._looked_millis
        if self._position is not None and not is_due and 0 <= age < self._reload_millis:
            return False
        newest = self._table.position()
        self._looked_millis = now
        if self._position is not None and newest.is_exactly(self._position):
            return False
        self._recent.clear()
        self._position = newest
        return True

    def _rows_of(self, wanted: pa.Array, ids: pa.Array, columns: Sequence[pa.Array]) -> pa.Table:
        found, missing = self._recent.take(wanted)
        if not len(missing):
            return found
        places = pc.index_in(missing, value_set=ids)
        read = self._read(missing, [column.take(places) for column in columns])
        _, absent = rows_by_id(read, missing)
        nulls = [absent, *(pa.nulls(len(absent), field.type) for field in self._schema)]
        read = pa.concat_tables([read, pa.Table.from_arrays(nulls, schema=read.schema)])
        self._recent.add(read)
        return pa.concat_tables([found, read])

    def _read(self, missing: pa.Array, columns: Sequence[pa.Array]) -> pa.Table:
        """Read the rows of the keys that are not in memory.

        ``missing`` has the ids of these keys, and ``columns`` their values.
        """
        assert self._position is not None
        schema = pa.schema([pa.field(ID, _ID_TYPE), *self._schema])
        if not self._table.snapshot_id_at(self._position):
            return schema.empty_table()
        self._scans += 1
        scan = self._table._scan_at(
            self._position, self._read_columns, _condition(self._keys, columns)
        )
        self._refuse_other_types(scan.schema)
        parts: list[pa.Table] = []
        for part in self._matching(scan.to_batches(), missing):
            parts.append(part)
            if sum(each.num_rows for each in parts) > len(missing):
                break  # of any keys, so that repeated ones need no memory
        if not parts:
            return schema.empty_table()
        found = pa.concat_tables(parts)
        self._refuse_repeated(found)
        return found.select([ID, *self._columns]).cast(schema)

    def _refuse_other_types(self, newest: pa.Schema) -> None:
        for name in self._read_columns:
            before = self._types[name]
            if newest.field(name).type != before:
                raise InvalidRequestError(
                    f"column {name!r} of {self._table.location} had the type {before} when the "
                    f"Lookup was made, and is {newest.field(name).type} now: make a new Lookup"
                )

    def _matching(self, batches: Iterator[pa.RecordBatch], wanted: pa.Array) -> Iterator[pa.Table]:
        """Yield the rows that have a key in ``wanted``, as one table for each batch with such rows.

        The column ``ID`` with the id of the key is added.
        """
        for batch in batches:
            keys = [_as(batch.column(name), self._types[name], name) for name in self._keys]
            ids, _ = _identities(keys)
            is_wanted = pc.is_in(ids, value_set=wanted)
            table = pa.Table.from_batches([batch]).append_column(ID, ids)
            if (part := table.filter(is_wanted)).num_rows:
                yield part

    def _refuse_repeated(self, rows: pa.Table) -> None:
        counts = pc.value_counts(rows.column(ID))
        repeated = counts.filter(pc.greater(counts.field("counts"), 1))
        if not len(repeated):
            return
        example, _ = rows_by_id(rows, repeated.field("values").slice(0, 1))
        key = example.select(self._keys).slice(0, 1).to_pylist()[0]
        raise InvalidRequestError(
            f"{self._table.location} has more than one row of the key {key!r}, so a lookup does "
            "not know which one to return: pass keys= with columns that together are unique; "
            f"table.check(unique=[{self._keys!r}]) finds the repeated keys"
        )

    def _given_columns(self, keys: object) -> list[pa.Array]:
        """Return the key columns of ``keys``, cast to the types of the table.

        Raise ``InvalidRequestError`` if a key column is missing or repeated.
        """
        if not isinstance(keys, pa.Table | pa.RecordBatch):
            raise InvalidRequestError(
                f"get_many needs keys as a pyarrow Table or RecordBatch, got "
                f"{type(keys).__name__}: write pa.table({{{self._keys[0]!r}: [...]}})"
            )
        names = keys.schema.names
        for name in self._keys:
            if names.count(name) != 1:
                has = (
                    f"has the columns {', '.join(map(repr, names)) or 'none'}: add the column, or "
                    f"rename one to {name!r}"
                )
                if name in names:
                    has = "has several columns of this name: keep one of them"
                raise InvalidRequestError(
                    f"a lookup in {self._table.location} needs the key column {name!r}, but keys "
                    f"{has}"
                )
        return [_as(keys.column(name), self._types[name], name) for name in self._keys]


def _key_columns(table: Table, keys: Sequence[str] | None) -> list[str]:
    found = table.key_columns if keys is None else _listed("keys", keys)
    if not found:
        raise InvalidRequestError(
            f"{table.location} has no primary key and no identifier fields: name columns that "
            "together are unique, as in Lookup(table, keys=['id'])"
        )
    return found


def _listed(argument: str, names: Sequence[str]) -> list[str]:
    found = columns_named(names)
    if not found or len({*found}) < len(found):
        raise InvalidRequestError(
            f"{argument} must be a list of different names of columns, got {names!r}"
        )
    return found


def _check_least(name: str, value: Any, least: int) -> None:
    kinds = (int, float) if least == 0 else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not value >= least:
        number = "a number" if float in kinds else "a whole number"
        raise InvalidRequestError(f"{name} must be {number}, {least} or more, got {value!r}")


def _as(column: pa.Array | pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return cast_given(array, name, kind, before="the lookup")


def _identities(columns: Sequence[pa.Array]) -> tuple[pa.Array, pa.Array]:
    """Return the 16-byte id of each row's key, and a mask of the rows whose key has no null.

    Equal keys have equal ids.
    """
    hashes = row_hashes(columns)
    ids = pa.Array.from_buffers(_ID_TYPE, len(hashes), [None, pa.py_buffer(hashes)])
    is_complete = columns[0].is_valid()
    for column in columns[1:]:
        is_complete = pc.and_(is_complete, column.is_valid())
    return ids, is_complete


def _condition(names: Sequence[str], columns: Sequence[pa.Array]) -> Predicate | None:
    """Return a condition that all given keys meet; None if no key column can be compared.

    A scan skips partitions, buckets and files by this condition. Rows with other keys may meet it,
    too.
    """
    parts = [
        part
        for name, column in zip(names, columns, strict=True)
        if (part := _column_condition(name, column)) is not None
    ]
    return And(tuple(parts)) if parts else None


def _column_condition(name: str, column: pa.Array) -> Predicate | None:
    if not _is_ordered(column.type):
        return None
    values = pc.unique(column)
    if len(values) <= _MOST_VALUES:
        return col(name).isin(values)
    bounds = pc.min_max(column)
    return col(name).between(bounds["min"], bounds["max"])


def _is_ordered(kind: pa.DataType) -> bool:
    """Return True if a condition can compare values of this type.

    Floats are excluded because of NaN.
    """
    types = pa.types
    tests = (
        types.is_integer,
        types.is_string,
        types.is_binary,
        types.is_date,
        types.is_timestamp,
        types.is_decimal,
    )
    return any(test(kind) for test in tests)
