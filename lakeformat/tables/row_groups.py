# SPDX-License-Identifier: Apache-2.0
"""Skips Parquet row groups that cannot meet the conditions of a scan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakeformat.files.parquet.row_groups import Footer, PickGroups
from lakeformat.rows.prune import Bounds, ColumnTest, Conjunction, Mask, in_any, may_meet
from lakeformat.tables.scan_report import ScanReport
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.types import AtomicType, DataField, with_nullability

__all__ = ["group_picker"]


def group_picker(
    conditions: Conjunction,
    fields: Sequence[DataField],
    stored: Sequence[DataField],
    report: ScanReport,
) -> PickGroups:
    """Return a function that selects the row groups of a file to read.

    ``fields`` are the columns of the table, ``stored`` those of the file.
    """

    def pick(footer: Footer, columns: Sequence[str]) -> Mask:
        mask = in_any(conditions, lambda asked: _may_meet(footer, _usable(asked, fields, stored)))
        groups = np.flatnonzero(mask).tolist()
        report.picked(len(groups), len(footer), footer.size_bytes(groups, columns))
        return mask

    return pick


def _may_meet(footer: Footer, asked: Sequence[tuple[ColumnTest, DataField]]) -> Mask:
    """Return a mask of the row groups that may have rows that meet all conditions."""
    mask = np.ones(len(footer), np.bool_)
    for condition, field in asked if len(footer) else ():
        least, most = footer.bounds(field.name, to_arrow_type(field.type))
        bounds = Bounds(least, most, footer.nulls(field.name), footer.rows)
        mask &= may_meet(condition, bounds, field.type)
    return mask


def _usable(
    conditions: Sequence[ColumnTest], fields: Sequence[DataField], stored: Sequence[DataField]
) -> list[tuple[ColumnTest, DataField]]:
    """Return each usable condition with its column in the file.

    A condition is usable if its column exists in the file with the same atomic type; columns are
    compared by id.
    """
    now = {field.name: field for field in fields}
    then = {field.id: field for field in stored}
    found = []
    for condition in conditions:
        today = now.get(condition.column)
        field = None if today is None else then.get(today.id)
        if today is None or field is None or not isinstance(field.type, AtomicType):
            continue
        if with_nullability(field.type, nullable=True) == with_nullability(
            today.type, nullable=True
        ):
            found.append((condition, field))
    return found
