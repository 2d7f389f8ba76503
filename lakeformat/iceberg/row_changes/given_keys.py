# SPDX-License-Identifier: Apache-2.0
"""Searches stored rows by the keys of an upsert; each key occurs once and is not null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.read.condition_fields import condition_type
from lakeformat.iceberg.read.equality_keys import EqualityKeys
from lakeformat.iceberg.row_changes.key_values import KeyValues
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.rows.conditions.predicate import And, Predicate
from lakeformat.rows.groups import Positions
from lakeformat.tables.row_checks.example_rows import MOST_EXAMPLES, example_texts
from lakeformat.types.arrow_memory import array_of
from lakeformat.types.closest import closest
from lakeformat.types.types import DataField

__all__ = ["GivenKeys", "given_keys", "key_columns", "key_fields"]

_FLOATING = ("float", "double")


@dataclass(frozen=True)
class GivenKeys:
    """The indexed keys of given rows; each key has the number of its row."""

    fields: tuple[Field, ...]
    keys: EqualityKeys
    condition: Predicate
    """A condition to skip files and row groups; every row with one of the given keys meets it."""

    def __len__(self) -> int:
        return len(self.keys)

    def rows_of(self, stored: pa.RecordBatch) -> Positions:
        """Return, for each stored row, the number of the given row with the same key; -1 if none.

        The first columns of ``stored`` must be the key columns.
        """
        return self.keys.numbers(stored.columns[: len(self.fields)])


def key_fields(schema: Schema, names: Sequence[str] | None) -> tuple[Field, ...]:
    """Return the columns of the key: the columns in ``names``, by default the identifier fields.

    Raise ``InvalidRequestError`` for a column that does not exist or whose type cannot be a key,
    and if there is no key.
    """
    if names is None:
        names = [schema.name_of(each) or "" for each in schema.identifier_field_ids]
        if not names:
            raise InvalidRequestError(
                "the table has no identifier fields, so the key of its rows is not known: name the "
                "key columns, as in by=['id']"
            )
    if isinstance(names, str) or not names:
        raise InvalidRequestError(
            f"the key must be a list of columns, such as ['id'], got {names!r}"
        )
    by_name = {each.name: each for each in schema.fields}
    for name in names:
        if name not in by_name:
            raise InvalidRequestError(
                f"the key names {name!r}, but the table has only the columns {', '.join(by_name)}"
                f"{closest(name, by_name)}"
            )
        kind = by_name[name].type
        if not isinstance(kind, PrimitiveType) or kind.name in _FLOATING:
            raise InvalidRequestError(
                f"column {name!r} is {kind}, which cannot be a key: use columns of whole numbers, "
                "decimals, texts, dates, times or bytes"
            )
    return tuple(by_name[name] for name in dict.fromkeys(names))


def given_keys(rows: pa.Table, fields: Sequence[Field]) -> GivenKeys:
    """Return the indexed keys of ``rows``.

    Raise ``InvalidRequestError`` if a key is null, or if two rows have the same key.
    """
    columns = key_columns(rows, fields)
    own = np.arange(len(rows), dtype=np.int64)
    keys = EqualityKeys(columns, own)
    repeated = np.flatnonzero(keys.numbers(columns) != own)
    if len(repeated):
        shown = [DataField(each.id, each.name, condition_type(each.type)) for each in fields]
        some = example_texts(rows.take(array_of(repeated[:MOST_EXAMPLES])), shown)
        raise InvalidRequestError(
            f"the key of {len(repeated)} of {len(rows)} rows occurs again in later rows, such as "
            f"{'; '.join(dict.fromkeys(some))}: keep one row of each key"
        )
    values = [KeyValues(each) for each in fields]
    for found, column in zip(values, columns, strict=True):
        found.add(column)
    return GivenKeys(tuple(fields), keys, And(tuple(each.condition() for each in values)))


def key_columns(rows: pa.Table, fields: Sequence[Field]) -> list[pa.Array]:
    """Return the key columns of rows; raise ``InvalidRequestError`` if one has a null."""
    for each in fields:
        column = rows.column(each.name)
        if column.null_count:
            first = pc.index(column.is_null(), True).as_py()
            raise InvalidRequestError(
                f"column {each.name!r} is a key, but is null in {column.null_count} of {len(rows)} "
                f"rows, first in row {first} (rows count from 0). Fill in a value, or drop these "
                "rows"
            )
    return [rows.column(each.name).combine_chunks() for each in fields]
