# SPDX-License-Identifier: Apache-2.0
"""Skips Parquet row groups in which no row can meet the conditions of a scan."""

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
    """Return a function that selects the row groups that a scan reads in a file.

    ``fields`` are the columns of the table, ``stored`` the columns of the file. The function also
    counts the row groups in ``report``.
    """

    def pick(footer: Footer, columns: Sequence[str]) -> Mask:
        mask = in_any(conditions, lambda asked: _may_meet(footer, _usable(asked, fields, stored)))
        groups = np.flatnonzero(mask).tolist()
        report.picked(len(groups), len(footer), footer.size_bytes(groups, columns))
        return mask

    return pick


def _may_meet(footer: Footer, asked: Sequence[tuple[ColumnTest, DataField]]) -> Mask:
    """Return a mask of the row groups in which a row may meet all conditions in ``asked``."""
    mask = np.ones(len(footer), np.bool_)
    for condition, field in asked if len(footer) else ():
        least, most = footer.bounds(field.name, to_arrow_type(field.type))
        bounds = Bounds(least, most, footer.nulls(field.name), footer.rows)
        mask &= may_meet(condition, bounds, field.type)
    return mask


def _usable(
    conditions: Sequence[ColumnTest], fields: Sequence[DataField], stored: Sequence[DataField]
) -> list[tuple[ColumnTest, DataField]]:
    """Return the conditions that the file's bounds can decide, each with its column in the file.

    Columns are matched by field id. The column in the file must be atomic, and of the same type as
    in the table.
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
