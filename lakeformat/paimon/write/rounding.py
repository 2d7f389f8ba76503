"""Checks that floats stored in a narrower type keep their value."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.write.limits import map_entries

__all__ = ["check_rounding"]


def check_rounding(given: pa.Array, stored: pa.Array, name: str) -> None:
    """Raise InvalidRequestError if a float changed in the cast, nested values included."""
    source, target = given.type, stored.type
    if source == target or pa.types.is_null(source):
        return
    if pa.types.is_dictionary(source):
        check_rounding(given.dictionary_decode(), stored, name)
    elif pa.types.is_floating(source) and pa.types.is_floating(target):
        if target.bit_width < source.bit_width:
            _check_floats(given, stored, name)
    elif pa.types.is_list(target):
        check_rounding(given.flatten(), stored.flatten(), f"{name}.element")
    elif pa.types.is_map(target):
        parts = zip(map_entries(given), map_entries(stored), ("key", "value"), strict=True)
        for before, after, part in parts:
            check_rounding(before, after, f"{name}.{part}")
    elif pa.types.is_struct(target):
        before, after = given.drop_null(), stored.drop_null()
        for field in source:
            check_rounding(
                before.field(field.name), after.field(field.name), f"{name}.{field.name}"
            )


def _check_floats(given: pa.Array, stored: pa.Array, name: str) -> None:
    back = stored.cast(given.type)
    same = pc.or_(pc.equal(given, back), pc.and_(pc.is_nan(given), pc.is_nan(back)))
    changed = given.filter(pc.invert(same))
    if len(changed):
        raise InvalidRequestError(
            f"column {name!r} is a FLOAT, which cannot store {changed[0].as_py()!r} exactly: "
            "change it to DOUBLE, or round the values to float32 before writing"
        )
