# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of an upsert.

If the rows have kinds, such as ``-D``, only the last row of each key is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lakeformat.iceberg.read.equality_keys import EqualityKeys
from lakeformat.iceberg.row_changes.given_keys import key_columns
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field
from lakeformat.iceberg.write.given_rows import GivenRows
from lakeformat.rows.batches import to_batches
from lakeformat.rows.groups import Mask, Positions
from lakeformat.rows.row_kinds import GivenKinds, Kinds, is_retract
from lakeformat.types.arrow_memory import array_of

__all__ = [
    "GivenChanges",
    "NumberedRows",
    "conformed",
    "given_changes",
    "keys_of",
    "last_changes",
    "with_kinds",
]


class NumberedRows(NamedTuple):
    """Given rows, with the number of each row for error messages."""

    batch: pa.RecordBatch
    numbers: Sequence[int] | Positions


@dataclass(frozen=True, slots=True)
class GivenChanges:
    """The rows to store, and rows with the keys to delete."""

    stored: Sequence[NumberedRows]
    deleted: Sequence[NumberedRows] = ()

    def rows(self, schema: Schema) -> pa.Table:
        """Return the rows to store, converted to the columns of the table.

        Raise ``InvalidRequestError``, with the number of the row, for a value that does not fit.
        """
        return conformed(schema, self.stored)

    def keys(self, schema: Schema, fields: Sequence[Field], rows: pa.Table) -> pa.Table:
        """Return the keys of the rows to store, then the keys to delete.

        ``rows`` is the result of ``rows()``.
        """
        stored = rows.select([each.name for each in fields])
        return pa.concat_tables([stored, keys_of(schema, fields, self.deleted)])


def given_changes(
    schema: Schema, data: Any, fields: Sequence[Field], kinds: Any = None
) -> GivenChanges:
    """Return the rows of ``data`` as changes: rows to store, and rows with keys to delete.

    Without ``kinds`` every row is stored. With ``kinds`` only the last change of each key is used;
    raise ``InvalidRequestError`` for unknown kinds, or if a key is null.
    """
    if kinds is None:
        return GivenChanges([*_numbered(to_batches(data))])
    return last_changes(schema, fields, [*with_kinds(schema, data, kinds)])


def last_changes(
    schema: Schema, fields: Sequence[Field], given: Sequence[tuple[NumberedRows, Kinds]]
) -> GivenChanges:
    """Return the last change of each key; raise ``InvalidRequestError`` if a key is null."""
    is_last = _last_of_keys(schema, fields, [rows for rows, _ in given])
    stored: list[NumberedRows] = []
    deleted: list[NumberedRows] = []
    for rows, found in given:
        last, is_last = np.split(is_last, [len(found)])
        is_deleted = is_retract(found)
        stored.append(_chosen(rows, last & ~is_deleted))
        deleted.append(_chosen(rows, last & is_deleted))
    return GivenChanges(stored, deleted)


def conformed(schema: Schema, given: Iterable[NumberedRows]) -> pa.Table:
    """Return rows converted to the columns of the table.

    Raise ``InvalidRequestError``, with the number of the row, for a value that does not fit.
    """
    conform = GivenRows(schema)
    return pa.Table.from_batches([conform(*each) for each in given], conform.schema)


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[NumberedRows]:
    first = 0
    for batch in batches:
        numbers = range(first, first + batch.num_rows)
        yield NumberedRows(batch, numbers)
        first = numbers.stop


def with_kinds(schema: Schema, data: Any, kinds: Any) -> Iterator[tuple[NumberedRows, Kinds]]:
    """Yield each batch of ``data``, together with the kinds of its rows.

    A column of kinds is dropped from the batch, unless the table has this column. Raise
    ``InvalidRequestError`` for unknown kinds.
    """
    reader = GivenKinds([each.name for each in schema.fields], kinds)
    for given, numbers in _numbered(to_batches(data)):
        rows, own = reader.split(given)
        yield NumberedRows(rows, numbers), reader.read(own, numbers[0] if len(numbers) else 0)
    reader.finish()


def _last_of_keys(schema: Schema, fields: Sequence[Field], given: Sequence[NumberedRows]) -> Mask:
    columns = key_columns(keys_of(schema, fields, given), fields)
    own = np.arange(len(columns[0]), dtype=np.int64)
    is_last: Mask = EqualityKeys(columns, own).numbers(columns) == own
    return is_last


def keys_of(schema: Schema, fields: Sequence[Field], given: Iterable[NumberedRows]) -> pa.Table:
    """Return the key columns of the rows, converted to the types of the table."""
    names = {each.name for each in fields}
    alone = (
        NumberedRows(rows.select([each for each in rows.schema.names if each in names]), numbers)
        for rows, numbers in given
    )
    return conformed(replace(schema, fields=tuple(fields), identifier_field_ids=()), alone)


def _chosen(rows: NumberedRows, mask: Mask) -> NumberedRows:
    if mask.all():
        return rows
    numbers = np.asarray(rows.numbers, np.int64)
    return NumberedRows(rows.batch.filter(array_of(mask)), numbers[mask])
