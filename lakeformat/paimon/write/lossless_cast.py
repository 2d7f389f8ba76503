"""Rules for casts between Arrow types that never change the meaning of a value."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["means_the_same"]


def means_the_same(source: pa.DataType, target: pa.DataType) -> bool:
    """Return True if values of one type may be stored in the other, judged by the types alone."""
    if pa.types.is_null(source):
        return True
    if pa.types.is_dictionary(source):
        return means_the_same(source.value_type, target)
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)  # with and without a time zone never mix
    if pa.types.is_decimal(source) or pa.types.is_decimal(target):
        return _is_exact(source) and _is_exact(target)  # floats are not exact
    return any(belongs(source) and belongs(target) for belongs in _ATOMIC) or _parts_mean_the_same(
        source, target
    )


def _parts_mean_the_same(source: pa.DataType, target: pa.DataType) -> bool:
    if _is_list(source) and _is_list(target):
        return means_the_same(source.value_type, target.value_type)
    if pa.types.is_map(source) and pa.types.is_map(target):
        keys = means_the_same(source.key_type, target.key_type)
        return keys and means_the_same(source.item_type, target.item_type)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return _fields_mean_the_same(source, target)
    return False


def _fields_mean_the_same(source: pa.DataType, target: pa.DataType) -> bool:
    """Return True if the target has all fields; Arrow would silently drop unknown ones."""
    known = {field.name: field.type for field in target}
    return all(
        field.name in known and means_the_same(field.type, known[field.name]) for field in source
    )


def _is_number(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type))


def _is_exact(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow_type) or pa.types.is_decimal(arrow_type))


def _is_text(arrow_type: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(kind(arrow_type) for kind in kinds)


def _is_bytes(arrow_type: pa.DataType) -> bool:
    kinds = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(kind(arrow_type) for kind in kinds)


def _is_list(arrow_type: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(kind(arrow_type) for kind in kinds)


_ATOMIC = (
    pa.types.is_boolean,
    _is_number,
    _is_text,
    _is_bytes,
    pa.types.is_date,
    pa.types.is_time,
)
