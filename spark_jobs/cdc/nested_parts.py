"""Two nested types side by side, part by part: the numbers of their fields tell nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from lakeformat.types.types import ArrayType, DataType, MapType, RowType

__all__ = ["Path", "parts_beside"]

Path: TypeAlias = tuple[str, ...]


def parts_beside(
    found: DataType, there: DataType, path: Path
) -> Iterator[tuple[Path, DataType, DataType | None]]:
    """Each part that has no parts both have, by its path; None where ``there`` lacks it."""
    if isinstance(found, ArrayType) and isinstance(there, ArrayType):
        yield from parts_beside(found.element, there.element, (*path, "element"))
    elif isinstance(found, MapType) and isinstance(there, MapType):
        yield (*path, "key"), found.key, there.key
        yield from parts_beside(found.value, there.value, (*path, "value"))
    elif isinstance(found, RowType) and isinstance(there, RowType):
        parts = {part.name: part.type for part in there.fields}
        for part in found.fields:
            inner = (*path, part.name)
            if part.name in parts:
                yield from parts_beside(part.type, parts[part.name], inner)
            else:
                yield inner, part.type, None
    else:
        yield path, found, there
