# SPDX-License-Identifier: Apache-2.0
"""Cuts or pads texts and bytes to the length that a type declares."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.types.types import MAX_LENGTH, AtomicType, TypeName

__all__ = ["fit_bytes", "fit_text", "is_unlimited"]


def is_unlimited(data_type: AtomicType) -> bool:
    """Return True for STRING and BYTES."""
    return data_type.length == MAX_LENGTH


def fit_text(array: pa.Array, wanted: AtomicType) -> pa.Array:
    """Cut texts that are too long; pad a CHAR with spaces."""
    if is_unlimited(wanted):
        return array
    cut = pc.utf8_slice_codeunits(array, 0, wanted.length)
    return pc.utf8_rpad(cut, wanted.length) if wanted.name is TypeName.CHAR else cut


def fit_bytes(array: pa.Array, wanted: AtomicType) -> pa.Array:
    """Cut bytes that are too long; pad a BINARY with zeros."""
    if is_unlimited(wanted):
        return array
    cut = pc.binary_slice(array, 0, wanted.length)
    if wanted.name is not TypeName.BINARY:
        return cut
    # Arrow pads only text. For bytes: append as many zeros as a value can lack, then cut.
    zeros = pa.scalar(bytes(wanted.length), pa.binary())
    joined = pc.binary_join_element_wise(cut, zeros, pa.scalar(b"", pa.binary()))
    return pc.binary_slice(joined, 0, wanted.length)
