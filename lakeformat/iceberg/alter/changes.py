# SPDX-License-Identifier: Apache-2.0
"""The changes to columns and properties in one alteration of a table, as values."""

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
"""The names from a column down to a nested field; ``element`` and ``value`` name the parts of lists
and maps.
"""


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A new column or nested field; it may be null, and follows the existing ones."""

    path: Path
    type: pa.DataType
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class DroppedColumn:
    """A column or nested field to remove from the schema; existing files keep its values."""

    path: Path


@dataclass(frozen=True, slots=True)
class RenamedColumn:
    """A new name for a column or nested field."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class WiderColumn:
    """A wider type for a column or nested field."""

    path: Path
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class OptionalColumn:
    """A column or nested field that may be null from now on."""

    path: Path


@dataclass(frozen=True, slots=True)
class NewDoc:
    """A new comment of a column or nested field, or None to remove the comment."""

    path: Path
    doc: str | None


@dataclass(frozen=True, slots=True)
class MovedColumn:
    """A new position for a column among the columns, or for a nested field in its struct."""

    path: Path
    place: Literal["first", "last", "after", "before"]
    neighbour: str = ""
    """The name of the column or field next to the new position. It is only used if ``place`` is
    ``after`` or ``before``.
    """


ColumnChange: TypeAlias = (
    NewColumn | DroppedColumn | RenamedColumn | WiderColumn | OptionalColumn | NewDoc | MovedColumn
)


@dataclass(frozen=True, slots=True)
class Alteration:
    """All changes to one table that are made together or not at all."""

    columns: Sequence[ColumnChange] = ()
    properties: Mapping[str, str | None] = field(default_factory=dict)
    """The new values of table properties; a value of None removes the property."""
