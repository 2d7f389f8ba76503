# SPDX-License-Identifier: Apache-2.0
"""Rules for names and types of columns: files and schemas that break them cannot be read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakeformat.errors import InvalidRequestError
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
    VectorType,
)

__all__ = [
    "MAX_DEPTH",
    "check_fields",
    "holds_blobs",
    "is_list",
    "is_text",
    "is_whole_number",
    "names_a_directory",
    "require_list",
    "require_pair",
    "require_text",
]

MAX_DEPTH = 32
"""The deepest nesting of types that is allowed. Parquet readers fail at a much greater depth."""

_WITHOUT_TEXT = (TypeName.BINARY, TypeName.VARBINARY, TypeName.VARIANT, TypeName.BLOB)


def is_text(value: object) -> bool:
    """Return True for a str that UTF-8 can encode: it has no unpaired surrogate."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_whole_number(value: object) -> bool:
    """Return True for an int that is not a bool; Python counts a bool as an int."""
    return isinstance(value, int) and not isinstance(value, bool)


def require_text(what: str, value: object) -> None:
    """Raise ``InvalidRequestError`` if the value is not a str that UTF-8 can encode.

    ``what`` names the value in the message.
    """
    if not is_text(value):
        if isinstance(value, str):
            raise InvalidRequestError(
                f"{what} must be text that UTF-8 can encode, got {value!r}: remove the unpaired "
                "surrogate"
            )
        raise InvalidRequestError(f"{what} must be text, got {value!r}")


def require_pair(value: tuple[str, str]) -> tuple[str, str]:
    """Return a pair; raise ``TypeError`` for a str, which Python would split into two letters."""
    if isinstance(value, str):
        raise TypeError(value)
    return value


def is_list(value: object) -> bool:
    """Return True for an iterable of values; False for a single text or dict, which is one
    value.
    """
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def require_list(what: str, value: object, example: str) -> None:
    """Raise ``InvalidRequestError`` unless the value is a list, as ``is_list`` defines it.

    ``what`` names the value in the message, and ``example`` shows what to write.
    """
    if not is_list(value):
        raise InvalidRequestError(
            f"{what} must be a list, got {value!r:.100} ({type(value).__name__}): write {example}"
        )


def holds_blobs(data_type: DataType) -> bool:
    """Return True for BLOB, and for an ARRAY or MAP whose values are blobs."""
    match data_type:
        case AtomicType(name=name):
            return name is TypeName.BLOB
        case ArrayType(element=part) | MapType(value=part):
            return holds_blobs(part)
    return False


def check_fields(fields: Iterable[DataField]) -> None:
    """Raise ``InvalidRequestError`` for a column that is nested too deep, or has a ROW with invalid
    fields.
    """
    for column in fields:
        level: list[DataType] = [column.type]
        for _ in range(MAX_DEPTH):
            level = [part for data_type in level for part in _parts(data_type, column.name)]
        if any(not isinstance(data_type, AtomicType) for data_type in level):
            raise InvalidRequestError(
                f"column {column.name!r} nests types more than {MAX_DEPTH} deep; readers fail on "
                "files with deep nesting: split it into columns or store it as text"
            )


def _parts(data_type: DataType, column: str) -> list[DataType]:
    match data_type:
        case ArrayType(element=part) | VectorType(element=part) | MultisetType(element=part):
            return [part]
        case MapType(key=key, value=value):
            return [key, value]
        case RowType(fields=fields):
            _check_row([field.name for field in fields], column)
            return [field.type for field in fields]
    return []


def _check_row(names: list[str], column: str) -> None:
    if not names:
        raise InvalidRequestError(f"column {column!r} has a ROW without fields; add a field")
    for name in names:
        require_text(f"the name of a field in column {column!r}", name)
        if not name.strip():
            raise InvalidRequestError(
                f"column {column!r} has a ROW with a field without a name; name it"
            )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidRequestError(
            f"column {column!r} has a ROW with duplicate field names: {', '.join(repeated)}; "
            "rename them"
        )


def names_a_directory(kind: DataType) -> bool:
    """Return True if values of a type have a text form, which can name the directory of a
    partition.
    """
    return isinstance(kind, AtomicType) and kind.name not in _WITHOUT_TEXT
