# SPDX-License-Identifier: Apache-2.0
"""Summarises the partitions of a manifest, so that readers can skip the manifest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.nested_arrays import struct_children
from lakeformat.iceberg.metadata.single_value_bytes import single_value_bytes

__all__ = ["least_and_most", "partition_summaries"]


def partition_summaries(partitions: pa.StructArray) -> list[dict[str, Any]]:
    """Return a summary of each partition field: flags for nulls and NaN, and bounds.

    The bounds are those of all values that are neither null nor NaN.
    """
    return [_summary(values) for values in struct_children(partitions)]


def least_and_most(values: pa.Array) -> pa.Array | None:
    """Return an array of the smallest and the largest value; nulls and NaN are ignored.

    Zero of a floating-point type is returned as -0.0 if it is the smallest value, and as 0.0 if it
    is the largest. Return None if all values are null or NaN.
    """
    if pa.types.is_null(values.type):
        return None
    if pa.types.is_floating(values.type):
        is_nan = pc.is_nan(values)
        values = values.filter(pc.invert(is_nan)) if pc.any(is_nan).as_py() else values
    ends = pc.min_max(values)
    if not ends["min"].is_valid:
        return None
    found = pa.array([ends["min"], ends["max"]], values.type)
    if not pa.types.is_floating(values.type):
        return found
    zeros = pa.array([-0.0, 0.0], values.type)
    return pc.if_else(pc.equal(found, 0), zeros, found)


def _summary(values: pa.Array) -> dict[str, Any]:
    ends = least_and_most(values)
    lower, upper = (None, None) if ends is None else single_value_bytes(ends).to_pylist()
    is_floating = pa.types.is_floating(values.type)
    return {
        "contains_null": values.null_count > 0,
        "contains_nan": is_floating and bool(pc.any(pc.is_nan(values)).as_py()),
        "lower_bound": lower,
        "upper_bound": upper,
    }
