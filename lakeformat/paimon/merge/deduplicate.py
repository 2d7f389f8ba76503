# SPDX-License-Identifier: Apache-2.0
"""Engine ``deduplicate``: the last row of a key replaces all older rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.paimon.merge.ignored_deletes import meeting_retracts, without
from lakeformat.rows.groups import KeyGroups
from lakeformat.rows.take_rows import take_rows

__all__ = ["Deduplicate"]


@dataclass(frozen=True, slots=True)
class Deduplicate:
    """Keeps the last row of each key in merge order, with its own kind.

    With ``ignore_delete``, rows of the kinds -D and -U are dropped first, but only in keys whose
    rows must be merged (see ``KeyGroups.meets``).
    """

    ignore_delete: bool = False

    def needs(self, columns: Sequence[str]) -> tuple[str, ...]:
        return tuple(columns)

    def merge(self, rows: pa.Table, groups: KeyGroups) -> pa.Table:
        if self.ignore_delete:
            groups = without(groups, meeting_retracts(rows, groups))
        return take_rows(rows, groups.newest)
