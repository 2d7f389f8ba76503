"""What no column may be called or made of: files and schemas of it could not be read back.

``is_text`` and ``is_whole_number`` ask the same of any argument, whatever its annotation says.
"""

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
    "require_text",
]

MAX_DEPTH = 32
"""How deep types nest. Parquet readers give up far below what JSON and this could hold."""

_WITHOUT_TEXT = (TypeName.BINARY, TypeName.VARBINARY, TypeName.VARIANT, TypeName.BLOB)


def is_text(value: object) -> bool:
    """A str that UTF-8 can hold: half of a surrogate pair is none, nor is what is no str at all."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_whole_number(value: object) -> bool:
    """An int, and not a bool, which Python takes for one."""
    return isinstance(value, int) and not isinstance(value, bool)


def require_text(what: str, value: object) -> None:
    """Refuse what is no text, whatever the caller's annotations say."""
    if not is_text(value):
        raise InvalidRequestError(f"{what} must be text, got {value!r}")


def is_list(value: object) -> bool:
    """Several values; a text or a dict alone is one."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def require_list(what: str, value: object, example: str) -> None:
    """Refuse what ``is_list`` does not take for several values."""
    if not is_list(value):
        raise InvalidRequestError(
            f"{what} must be a list, got {value!r} ({type(value).__name__}): write {example}"
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
    """Raise where a column is nested too deep, or a ROW in it has fields that cannot be."""
    for column in fields:
        level: list[DataType] = [column.type]
        for _ in range(MAX_DEPTH):
            level = [part for data_type in level for part in _parts(data_type, column.name)]
        if any(not isinstance(data_type, AtomicType) for data_type in level):
            raise InvalidRequestError(
                f"column {column.name!r} nests types more than {MAX_DEPTH} deep, which files "
                "cannot be read back with; split it into columns or keep it as text"
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
        raise InvalidRequestError(f"column {column!r} has a ROW without fields")
    for name in names:
        require_text(f"the name of a field in column {column!r}", name)
        if not name.strip():
            raise InvalidRequestError(f"column {column!r} has a ROW with a field without a name")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidRequestError(
            f"column {column!r} has a ROW in which fields are there twice: {', '.join(repeated)}"
        )


def names_a_directory(kind: DataType) -> bool:
    """Whether values of a type have a text, by which the directory of a partition is named."""
    return isinstance(kind, AtomicType) and kind.name not in _WITHOUT_TEXT
