# SPDX-License-Identifier: Apache-2.0
"""Skips buckets and, in primary-key tables, single files of a bucket.

The value of a column outside of the key is known only after the rows of a key are merged. So the
bounds of such a column exclude a single file only if no key is in several files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, pairwise, product

import numpy as np

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.bucketing import bucket_function, keeps_buckets
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import Positions
from lakeformat.paimon.read.buckets import has_unique_rows, skips_level_zero
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.prune import ColumnTest, Mask, Op
from lakeformat.tables.parallel import in_parallel
from lakeformat.types.types import AtomicType, DataField, TypeName
from lakeformat.types.values import Value, values_to_arrow

__all__ = ["HashedBuckets", "by_merged_values"]

MOST_KEYS = 1000
"""The largest number of bucket keys by which buckets are pruned; more keys rarely exclude a bucket.
"""

_WHOLE_ROW_WINS = ("deduplicate", "first-row")
_EQUAL_WITH_OTHER_BYTES = (TypeName.FLOAT, TypeName.DOUBLE)
"""Types with equal values that have different hashes, such as 0.0 and -0.0."""


class HashedBuckets:
    """Excludes buckets by the hashes of bucket keys.

    Buckets are excluded only if the conditions list the values of every bucket-key column. If a
    change of a key column's type has changed the hashes of its values, no bucket is excluded.
    """

    def __init__(
        self,
        schema: TableSchema,
        conditions: Sequence[ColumnTest],
        read_schema: Callable[[int], TableSchema],
    ) -> None:
        self._schema = schema
        self._read_schema = read_schema
        options = schema.table_options
        names = options.bucket_key or tuple(field.name for field in schema.key_fields)
        by_name = {field.name: field for field in schema.fields}
        self._fields = [by_name[name] for name in names if name in by_name]
        self._kind = options.bucket_function
        self._keys: list[tuple[Value, ...]] | None = None
        values = [_values(field, conditions) for field in self._fields]
        if options.bucket > 0 and names and len(self._fields) == len(names) and all(values):
            keys = list(islice(product(*(found for found in values if found)), MOST_KEYS + 1))
            self._keys = keys if len(keys) <= MOST_KEYS else None

    def mask(self, columns: ManifestColumns) -> Mask:
        """Return a mask of the files whose bucket may have a wanted key.

        The number of buckets is taken from each file's entry, because a rescale may have changed
        the option.
        """
        mask = np.ones(len(columns), np.bool_)
        if self._keys is None:
            return mask
        totals = columns.total_buckets.numbers
        for total in np.unique(totals).tolist():
            if total > 0:
                rows = np.flatnonzero(totals == total)
                mask[rows] = np.isin(columns.bucket.numbers[rows], self._buckets(total))
        return mask if mask.all() or self._has_kept_buckets() else np.ones(len(columns), np.bool_)

    def _has_kept_buckets(self) -> bool:
        """Return True if rows with equal values of the bucket key are always in one bucket.

        A change of a column's type can break this, because old rows keep their bucket. All schemas
        of the table are compared. Those of the files are not enough, because a compaction writes
        old rows with the new schema. The types of a primary key never change.
        """
        if self._schema.primary_keys:
            return True
        try:
            schemas = [*in_parallel(self._read_schema, range(self._schema.id)), self._schema]
        except CorruptTableError:  # a branch may lack the oldest schemas
            return False
        by_id = [{field.id: field.type for field in schema.fields} for schema in schemas]
        return all(
            keeps_buckets(self._kind, old[field.id], new[field.id])
            for field in self._fields
            for old, new in pairwise(by_id)
            if field.id in old and field.id in new
        )

    def _buckets(self, total: int) -> Positions:
        assert self._keys is not None
        types = [field.type for field in self._fields]
        arrays = [
            values_to_arrow([key[position] for key in self._keys], data_type)
            for position, data_type in enumerate(types)
        ]
        return np.asarray(bucket_function(self._kind, types, total)(arrays), np.int64)


def by_merged_values(
    schema: TableSchema, columns: ManifestColumns, may_match: Mask, places: Sequence[Positions]
) -> Mask:
    """Return a mask of the files to read for conditions on columns outside of the primary key.

    ``may_match`` is True for the files whose value bounds meet the conditions; ``places`` are the
    positions of each bucket's files. If no key of a bucket is in two files, only its matching files
    are read. Otherwise, all files of the bucket are read if one of them matches or if the merge
    engine combines columns of several rows.
    """
    if skips_level_zero(schema):  # each key is in one visible file
        return may_match
    # With deletion vectors merged on read, rows of level 0 are merged with rows of higher levels,
    # too.
    whole = schema.table_options.merge_engine in _WHOLE_ROW_WINS
    levels = columns.level.numbers
    mask = np.ones(len(columns), np.bool_)
    for rows in places:
        if _has_each_key_once(schema, levels[rows]):
            mask[rows] = may_match[rows]
        elif whole:
            mask[rows] = may_match[rows].any()
    return mask


def _has_each_key_once(schema: TableSchema, levels: Positions) -> bool:
    if len(levels) == 1:
        return True
    if (levels == 0).any():
        return False
    return has_unique_rows(schema) or bool((levels == levels[0]).all())


def _values(field: DataField, conditions: Sequence[ColumnTest]) -> list[Value] | None:
    """Return the values of the first EQUAL or IN condition on a column, without nulls.

    Return None if there is no such condition, or if all its values are null. Return None, too, for
    nested columns, and for FLOAT and DOUBLE, whose equal values may have different hashes.
    """
    if not isinstance(field.type, AtomicType) or field.type.name in _EQUAL_WITH_OTHER_BYTES:
        return None
    for condition in conditions:
        if condition.column == field.name and condition.op in (Op.EQUAL, Op.IN):
            literal = condition.literal
            found = literal if condition.op is Op.IN else (literal,)
            return [value for value in found if value is not None] or None
    return None
