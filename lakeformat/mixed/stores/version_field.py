# SPDX-License-Identifier: Apache-2.0
"""The version field of a Mixed table: of two rows with one key, the row with the larger value is
the newer one.

Changes of such a table are ordered by version, then by transaction, then by offset. Amoro has no
such property: its readers order changes only by transaction and offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.iceberg.properties import bool_property
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.mixed.stores.properties import REPEATED_KEYS, UPSERT, VERSION_FIELD
from lakeformat.types.arrow_memory import null_mask, numbers
from lakeformat.types.closest import closest

__all__ = [
    "OPTIMIZED_BY_AMORO",
    "has_unique_keys",
    "is_wider_version",
    "new_version_properties",
    "require_no_smaller_version",
    "require_properties_with_version",
    "require_version_of_deletes",
    "rows_replace",
    "version_field",
    "version_numbers",
]

_OF_PAIMON = "sequence.field"
OPTIMIZED_BY_AMORO = "self-optimizing.enabled"
"""With false, Amoro does not optimize the table; default: true."""
_NUMBERS = frozenset({"int", "long", "date", "timestamp", "timestamptz"})
_MOST_DIGITS = 18
_KINDS = f"{', '.join(sorted(_NUMBERS))}, or decimal of at most {_MOST_DIGITS} digits"
_SMALLEST = np.iinfo(np.int64).min


def rows_replace(properties: Mapping[str, str]) -> bool:
    """Return True if a written row replaces the row of its key; False if both rows remain."""
    return VERSION_FIELD in properties or bool_property(properties, UPSERT, default=True)


def has_unique_keys(properties: Mapping[str, str]) -> bool:
    """Return True if each key has one row in a partition; False if it can have several.

    Without a version field, a key can have several rows if the property ``write.upsert.enabled`` is
    false, was false earlier, or is missing: Amoro's default is false.
    """
    if VERSION_FIELD in properties:
        return True
    return REPEATED_KEYS not in properties and bool_property(properties, UPSERT, default=False)


def version_field(properties: Mapping[str, str], schema: Schema, uri: str) -> Field | None:
    """Return the version field of a table; None if it has none.

    Raise ``CorruptTableError`` if the property names a column that cannot hold versions.
    """
    name = properties.get(VERSION_FIELD)
    if name is None:
        return None
    for field in schema.fields:
        if field.name == name and _has_order(field):
            return field
    columns = {each.name: each.type for each in schema.fields}
    found = f"has the type {columns[name]}" if name in columns else "does not exist"
    raise CorruptTableError(
        f"the property {VERSION_FIELD!r} of {uri} names the column {name!r}, which {found}. The "
        f"columns are {', '.join(columns)}, and a version must be of {_KINDS}. Undo the rename or "
        "change of the column in both stores, with the program that made it"
    )


def new_version_properties(
    properties: Mapping[str, str], schema: Schema, key: Sequence[str]
) -> dict[str, str]:
    """Return the properties that a new table with ``properties`` needs in addition.

    Raise ``InvalidRequestError`` if its version field cannot order changes, or if another property
    contradicts it.
    """
    if _OF_PAIMON in properties:
        raise InvalidRequestError(
            f"{_OF_PAIMON!r} is a property of Paimon tables: set {VERSION_FIELD!r} instead, which "
            "names the column whose larger value wins in a Mixed table"
        )
    name = properties.get(VERSION_FIELD)
    if name is None:
        return {}
    _require_order(name, schema, key)
    require_properties_with_version(properties, name)
    return {OPTIMIZED_BY_AMORO: "false"}


def require_properties_with_version(properties: Mapping[str, str], name: str) -> None:
    """Raise ``InvalidRequestError`` for ``write.upsert.enabled`` = false or
    ``self-optimizing.enabled`` = true, which contradict the version field ``name``.
    """
    if not bool_property(properties, UPSERT, default=True):
        raise InvalidRequestError(
            f"{UPSERT!r} is false, but a table with a version field, {name!r}, has one row for "
            "each key: leave the property out"
        )
    if bool_property(properties, OPTIMIZED_BY_AMORO, default=False):
        raise InvalidRequestError(
            f"{OPTIMIZED_BY_AMORO!r} must be false, because Amoro's optimizer does not know the "
            f"version field {name!r}, and would keep the last written row of a key: set the "
            "property to 'false'"
        )


def is_wider_version(kind: pa.DataType) -> bool:
    """Return True if versions keep their order when their column gets the wider type ``kind``."""
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= _MOST_DIGITS)
    return bool(pa.types.is_int64(kind))


def version_numbers(column: pa.Array) -> NDArray[np.int64]:
    """Return a number for each version: a larger version has a larger number, and null has the
    smallest.
    """
    found = numbers(column)
    if found.ndim > 1:  # decimals, whose low half has all of their digits
        found = found[:, 0].view(np.int64)
    found = found.astype(np.int64)
    nulls = null_mask(column)
    return found if nulls is None else np.where(nulls, _SMALLEST, found)


def require_version_of_deletes(column: pa.Array, deletes: NDArray[np.bool_], row: int) -> None:
    """Raise ``InvalidRequestError`` if a deleted row has no version.

    ``row`` is the row number of the first value in ``column``; the message counts from it.
    """
    nulls = null_mask(column)
    if nulls is not None and (nulls & deletes).any():
        number = row + int(np.argmax(nulls & deletes))
        raise InvalidRequestError(
            f"row {number} is a delete whose version is null, so it would delete no stored row "
            "with a version. Set its version to the largest version that it should delete, or "
            "delete rows with table.delete(where), which uses the version of each row"
        )


def require_no_smaller_version(old: pa.Array, new: pa.Array) -> None:
    """Raise ``InvalidRequestError`` if an UPDATE makes a version smaller."""
    versions = [version_numbers(each) for each in (old, new)]
    if (is_smaller := versions[1] < versions[0]).any():
        row = int(np.argmax(is_smaller))
        raise InvalidRequestError(
            f"the UPDATE sets the version {new[row].as_py()!r} in a row that has "
            f"{old[row].as_py()!r}, so the old row would win over the new one. Nothing was "
            "changed: set a larger version, or leave the version as it is"
        )


def _require_order(name: str, schema: Schema, key: Sequence[str]) -> None:
    fields = {each.name: each for each in schema.fields}
    if name not in fields:
        raise InvalidRequestError(
            f"{VERSION_FIELD!r} names {name!r}, but the columns are {', '.join(fields)}"
            f"{closest(name, fields)}"
        )
    if name in key:
        raise InvalidRequestError(
            f"{VERSION_FIELD!r} names {name!r}, a key column, so all rows of a key have one "
            "version: name another column"
        )
    if not _has_order(fields[name]):
        raise InvalidRequestError(
            f"{VERSION_FIELD!r} names {name!r} of type {fields[name].type}, but a version must be "
            f"of {_KINDS}: name another column"
        )


def _has_order(field: Field) -> bool:
    kind = field.type
    if not isinstance(kind, PrimitiveType):
        return False
    return kind.name in _NUMBERS or (kind.name == "decimal" and kind.precision <= _MOST_DIGITS)
