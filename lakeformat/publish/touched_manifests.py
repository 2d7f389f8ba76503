# SPDX-License-Identifier: Apache-2.0
"""Finds the manifests that may name files of some partitions, from the manifest list alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.single_values import bounds_of
from lakeformat.iceberg.types import PrimitiveType

__all__ = ["touched_manifests"]


def touched_manifests(
    metadata: TableMetadata, manifests: pa.Table, partitions: pa.StructArray
) -> pa.Array:
    """Return a mask of the manifests that a commit to ``partitions`` may have to change.

    A manifest without live files is selected, too, because the new manifest list leaves it out.
    """
    counts = (manifests.column(f"{kind}_files_count") for kind in ("added", "existing"))
    has_none = pc.equal(pc.add(*counts), 0)
    mask = pa.repeat(pa.scalar(True), len(manifests))
    for place, field in enumerate(metadata.partition_specs[0].fields):
        column = metadata.schema.field(field.source_ids[0])
        if column is not None and isinstance(column.type, PrimitiveType):
            values = partitions.field(place)
            mask = pc.and_(mask, _may_hold(manifests, place, values, column.type))
    found: pa.Array = pc.or_(mask, pc.fill_null(has_none, True)).combine_chunks()
    return found


def _may_hold(manifests: pa.Table, place: int, values: pa.Array, kind: PrimitiveType) -> pa.Array:
    """Return a mask of the manifests that may have one of ``values`` in a partition field.

    ``place`` is the position of the field. A manifest is selected if its range of the field
    overlaps the range of ``values``, or if its summary of the field is missing. If ``values`` has a
    null, manifests that may have nulls are selected, too. Floating-point values select all
    manifests.
    """
    if pa.types.is_floating(values.type):  # NaN is in no range
        return pa.repeat(pa.scalar(True), len(manifests))
    lists = manifests.column("partitions").combine_chunks()
    summary = pa.array(
        [
            each[place] if each is not None and len(each) > place else None
            for each in lists.to_pylist()
        ],
        lists.type.value_type,
    )
    lower, upper = bounds_of(summary.field("lower_bound"), summary.field("upper_bound"), kind)
    least, most = pc.min_max(values).values()
    meets = pc.and_(pc.less_equal(lower, most), pc.greater_equal(upper, least))
    has_null = pc.fill_null(summary.field("contains_null"), True)
    of_nulls = has_null if values.null_count else pa.repeat(pa.scalar(False), len(manifests))
    is_unknown = pc.is_null(summary)
    # ``meets`` is null if the manifest or the commit has only nulls in this field.
    return pc.or_(pc.or_(pc.fill_null(meets, False), of_nulls), is_unknown)
