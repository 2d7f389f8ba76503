# SPDX-License-Identifier: Apache-2.0
"""Finds the columns that options name, to update the options in a rename and to refuse a drop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lakeformat.paimon.file_index_types import INDEXABLE

__all__ = ["referenced_columns", "rename_in_options"]

LISTS = (
    "bucket-key",
    "sequence.field",
    "changelog-producer.row-deduplicate-ignore-fields",
    "partial-update.remove-record-on-sequence-group",
    *(f"file-index.{index_type}.columns" for index_type in INDEXABLE),
)
"""Options whose value is a list of column names."""

SINGLE = ("rowkind.field", "record-level.time-field")
"""Options whose value is the name of one column."""

_OF_COLUMN = re.compile(
    rf"(?P<prefix>fields|file-index\.(?:{'|'.join(INDEXABLE)}))"
    r"\.(?P<column>.+)\.(?P<suffix>[^.]+)"
)
"""Matches ``fields.<column>.<suffix>``, and the settings of a file index for a column.

Only the keys of these options name a column, not the values.
"""

_GROUP = re.compile(r"fields\.(?P<columns>.+)\.sequence-group")
"""Matches ``fields.<columns>.sequence-group``, whose key and value are lists of column names."""


def rename_in_options(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Return the options after a rename of the column ``old`` to ``new``."""
    renamed = {}
    for key, value in options.items():
        if key in (*LISTS, *SINGLE):
            value = _renamed_list(value, old, new)
        elif found := _GROUP.fullmatch(key):
            key = f"fields.{_renamed_list(found['columns'], old, new)}.sequence-group"
            value = _renamed_list(value, old, new)
        elif (found := _OF_COLUMN.fullmatch(key)) and found["column"] == old:
            key = f"{found['prefix']}.{new}.{found['suffix']}"
        renamed[key] = value
    return renamed


def referenced_columns(options: Mapping[str, str]) -> dict[str, str]:
    """Return every column that an option names, with the key of the first option that names it."""
    found: dict[str, str] = {}
    for key, value in options.items():
        for column in _columns(key, value):
            found.setdefault(column, key)
    return found


def _columns(key: str, value: str) -> Iterable[str]:
    if key in (*LISTS, *SINGLE):
        return _names(value)
    if found := _GROUP.fullmatch(key):
        return [*_names(found["columns"]), *_names(value)]
    found = _OF_COLUMN.fullmatch(key)
    return [found["column"]] if found else []


def _renamed_list(names: str, old: str, new: str) -> str:
    return ",".join(new if name.strip() == old else name for name in names.split(","))


def _names(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]
