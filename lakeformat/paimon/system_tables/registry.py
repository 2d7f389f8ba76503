# SPDX-License-Identifier: Apache-2.0
"""Finds system tables by their names."""

from __future__ import annotations

from typing import Any

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.system_tables.aggregation_fields import AGGREGATION_FIELDS
from lakeformat.paimon.system_tables.branches import BRANCHES
from lakeformat.paimon.system_tables.buckets import BUCKETS
from lakeformat.paimon.system_tables.consumers import CONSUMERS
from lakeformat.paimon.system_tables.declaration import SystemTableDeclaration
from lakeformat.paimon.system_tables.files import FILES
from lakeformat.paimon.system_tables.manifests import MANIFESTS
from lakeformat.paimon.system_tables.options import OPTIONS
from lakeformat.paimon.system_tables.partitions import PARTITIONS
from lakeformat.paimon.system_tables.row_tables import row_table_names
from lakeformat.paimon.system_tables.schemas import SCHEMAS
from lakeformat.paimon.system_tables.snapshots import SNAPSHOTS
from lakeformat.paimon.system_tables.statistics import STATISTICS
from lakeformat.paimon.system_tables.table_indexes import TABLE_INDEXES
from lakeformat.paimon.system_tables.tags import TAGS
from lakeformat.types.type_rules import require_text

__all__ = ["find_system_table", "system_table_names"]

_ALL: tuple[SystemTableDeclaration[Any], ...] = (
    SNAPSHOTS,
    SCHEMAS,
    OPTIONS,
    MANIFESTS,
    FILES,
    PARTITIONS,
    BUCKETS,
    TAGS,
    BRANCHES,
    CONSUMERS,
    STATISTICS,
    TABLE_INDEXES,
    AGGREGATION_FIELDS,
)
_BY_NAME = {declaration.name: declaration for declaration in _ALL}

_NOT_YET = (
    "file_indexes",
    "file_key_ranges",
    "row_tracking",
)
"""System tables of the format that this library does not have."""


def system_table_names() -> list[str]:
    """Return the names, without the ``$``, of the system tables that show metadata."""
    return [*_BY_NAME]


def find_system_table(name: str) -> SystemTableDeclaration[Any]:
    """Return the declaration of a system table that shows metadata; letter case does not matter.

    Raise InvalidRequestError for an unknown name; the error lists all system tables. Raise
    UnsupportedError for a system table that only other engines have.
    """
    require_text("the name of a system table", name)
    found = _BY_NAME.get(name.lower())
    if found is not None:
        return found
    there = ", ".join(f"${known}" for known in (*_BY_NAME, *row_table_names()))
    if name.lower() in _NOT_YET:
        raise UnsupportedError(f"this version has no system table ${name.lower()}; it has {there}")
    raise InvalidRequestError(f"there is no system table ${name}; the system tables are {there}")
