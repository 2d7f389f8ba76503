# SPDX-License-Identifier: Apache-2.0
"""Finds key columns whose type was changed.

An int can have another hash than the same number as a long. So the node in the name of an older
file may differ from the node that its keys have now.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.types import Field, PrimitiveType

__all__ = ["has_changed_key_type", "require_one_key_type"]


def has_changed_key_type(stores: Sequence[TableMetadata], key: Sequence[Field]) -> bool:
    """Return True if a key column has several types in the schemas of the stores."""
    return bool(_changed(stores, key))


def require_one_key_type(
    stores: Sequence[TableMetadata], key: Sequence[Field], operation: str
) -> None:
    """Raise ``UnsupportedError``, which names ``operation``, if a key column had several types."""
    if changed := _changed(stores, key):
        name, types = changed[0]
        raise UnsupportedError(
            f"{operation} of the Mixed table {stores[0].location} is not possible: its key column "
            f"{name!r} had the types {' and '.join(types)}, in which one value can have different "
            "hashes, so Amoro's readers would miss deletes. table.scan() reads the rows correctly: "
            "write them to a new table"
        )


def _changed(stores: Sequence[TableMetadata], key: Sequence[Field]) -> list[tuple[str, list[str]]]:
    found = []
    for field in key:
        types = {
            each.type.name: None
            for store in stores
            for schema in store.schemas
            for each in schema.fields
            if each.id == field.id and isinstance(each.type, PrimitiveType)
        }
        if len(types) > 1:
            found.append((field.name, [*types]))
    return found
