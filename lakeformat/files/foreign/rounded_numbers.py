# SPDX-License-Identifier: Apache-2.0
"""Numbers in JSON files that a DOUBLE may round, and the DECIMAL types that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from lakeformat.errors import InvalidRequestError
from lakeformat.files.foreign.json_rows import is_blank, open_json
from lakeformat.files.foreign.text_checks import read_growing

__all__ = ["EXACT_DIGITS", "exact_decimals", "rounded_numbers", "rounded_refusal"]

EXACT_DIGITS = 15
"""The number of digits that a DOUBLE keeps exactly; a number with more digits may be rounded."""
_DOUBLE = pa.float64()
_DECIMALS = [pa.decimal128(38, places) for places in range(39)]
_WIDEST = pa.decimal256(76, 38)


def rounded_numbers(
    values: pa.Array, name: str, kind: pa.DataType = _DOUBLE
) -> Iterator[tuple[str, float]]:
    """Find numbers that a DOUBLE may have rounded, in a column and its nested fields.

    For the column, or for each nested field, that has such numbers, yield its path and its first
    such number. Only numbers of the type ``kind`` are checked. If it is BIGINT, find the whole
    numbers that a conversion to DOUBLE may round.
    """
    if pa.types.is_list(values.type):
        yield from rounded_numbers(values.flatten(), f"{name}.element", kind)
    elif pa.types.is_struct(values.type):
        for field, part in zip(values.type, values.flatten(), strict=True):
            yield from rounded_numbers(part, f"{name}.{field.name}", kind)
    elif values.type == kind:
        limit = 10**EXACT_DIGITS
        large = pc.or_(
            pc.greater_equal(values, pa.scalar(limit, kind)),
            pc.less_equal(values, pa.scalar(-limit, kind)),
        )
        found = values.filter(pc.and_(large, pc.is_finite(values)))
        if len(found):
            yield name, found[0].as_py()


def rounded_refusal(name: str, number: float) -> InvalidRequestError:
    """Return the error about a number that Arrow may have rounded in an inferred column."""
    return InvalidRequestError(
        f"column {name!r} holds a number near {number!r}, which an inferred column may have "
        "rounded: declare the column first, with create_table or with alter_table and "
        "lake.add_column (as DOUBLE if rounding is acceptable), or write the number as text"
    )


def exact_decimals(paths: Sequence[str], names: Sequence[str]) -> Mapping[str, pa.DataType]:
    """Return the DECIMAL types of those columns in ``names`` whose numbers a DOUBLE may round.

    ``paths`` are JSON files. Each type is the DECIMAL with the fewest decimal places that holds all
    numbers of its column; raise ``InvalidRequestError`` if there is none. Return an empty mapping
    if a value is not a number: the reader of the rows then raises an error that names the row.
    """
    rounded: dict[str, tuple[str, float]] = {}
    try:
        for path in paths if names else ():
            for batch in _columns(path, names, pa.float64()):
                for name, values in zip(batch.schema.names, batch.columns, strict=True):
                    for _, number in rounded_numbers(values, name):
                        rounded.setdefault(name, (path, number))
    except pa.ArrowInvalid:  # the reader of the rows names the row of this value
        return {}
    return {name: _exact_decimal(paths, name, *found) for name, found in rounded.items()}


def _exact_decimal(paths: Sequence[str], name: str, path: str, number: float) -> pa.DataType:
    kinds = _DECIMALS
    try:
        for each in paths:
            for batch in _columns(each, [name], _WIDEST):
                kinds = [kind for kind in kinds if _holds(kind, batch.column(0))]
    except pa.ArrowInvalid:
        kinds = []
    if not kinds:
        raise InvalidRequestError(
            f"{path}: column {name!r} holds a number near {number!r}, which a DOUBLE may round, "
            "and no DECIMAL holds all numbers of the column: cast it to DOUBLE if rounding is "
            "acceptable, or write the numbers as text"
        )
    return kinds[0]


def _columns(path: str, names: Sequence[str], kind: pa.DataType) -> Iterator[pa.RecordBatch]:
    options = arrow_json.ParseOptions(
        explicit_schema=pa.schema([(name, kind) for name in names]),
        unexpected_field_behavior="ignore",
    )
    if not is_blank(path):
        yield from read_growing(partial(open_json, path, options=options))


def _holds(kind: pa.DataType, values: pa.Array) -> bool:
    try:
        values.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
