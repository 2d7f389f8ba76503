# SPDX-License-Identifier: Apache-2.0
"""The changes of columns and properties that one alter of a table makes, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pyarrow as pa

__all__ = [
    "Alteration",
    "ColumnChange",
    "DroppedColumn",
    "MovedColumn",
    "NewColumn",
    "NewDoc",
    "OptionalColumn",
    "Path",
    "RenamedColumn",
    "WiderColumn",
]

Path: TypeAlias = tuple[str, ...]
"""The names from a column to a field inside of it; ``element`` and ``value`` stand for the parts of
a list and a map.
"""


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column, or a field inside of one, that may be null; it becomes the last one."""

    path: Path
    type: pa.DataType
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class DroppedColumn:
    """A column, or a field inside of one, that is removed; existing files keep its values."""

    path: Path


@dataclass(frozen=True, slots=True)
class RenamedColumn:
    """A new name for a column, or for a field inside of one."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class WiderColumn:
    """A new type for a column, or for a field inside of one."""

    path: Path
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class OptionalColumn:
    """A column, or a field inside of one, that may be null from now on."""

    path: Path


@dataclass(frozen=True, slots=True)
class NewDoc:
    """A new comment of a column, or of a field inside of one; None removes it."""

    path: Path
    doc: str | None


@dataclass(frozen=True, slots=True)
class MovedColumn:
    """A new place for a column, or for a field among the fields of its struct."""

    path: Path
    place: Literal["first", "last", "after", "before"]
    neighbour: str = ""
    """The name of the neighbour, with ``after`` and ``before``."""


ColumnChange: TypeAlias = (
    NewColumn | DroppedColumn | RenamedColumn | WiderColumn | OptionalColumn | NewDoc | MovedColumn
)


@dataclass(frozen=True, slots=True)
class Alteration:
    """All changes of one alter, which are made together or not at all."""

    columns: Sequence[ColumnChange] = ()
    properties: Mapping[str, str | None] = field(default_factory=dict)
    """The new values of table properties; None removes a property."""
