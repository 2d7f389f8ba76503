# SPDX-License-Identifier: Apache-2.0
"""Encodes values in Iceberg's binary single-value form, which bounds use."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakeformat.files.decimal_bytes import decimals_to_bytes
from lakeformat.types.arrow_memory import numbers

__all__ = ["single_value_bytes"]


def single_value_bytes(values: pa.Array) -> pa.Array:
    """Return the bytes of each value of a primitive type; nulls remain null."""
    kind = values.type
    if pa.types.is_decimal(kind):
        return decimals_to_bytes(values)
    if pa.types.is_null(kind):
        return pa.nulls(len(values), pa.binary())
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return values.cast(pa.binary())
    content = np.ascontiguousarray(numbers(values))
    width = content.dtype.itemsize
    validity = values.is_valid().buffers()[1] if values.null_count else None
    buffers = [validity, pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(width), len(values), buffers).cast(pa.binary())
