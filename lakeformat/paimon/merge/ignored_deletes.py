# SPDX-License-Identifier: Apache-2.0
"""Finds the deletes and update-befores that ``ignore-delete`` makes an engine ignore.

Files written before the option was set may contain such rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.rows.groups import KeyGroups, Mask
from lakeformat.rows.row_kinds import is_retract

__all__ = ["meeting_retracts", "without"]


def meeting_retracts(rows: pa.Table, groups: KeyGroups) -> Mask:
    """Return a mask, in the order of ``groups.order``, of the retracts whose key must be merged."""
    retracts = is_retract(rows[VALUE_KIND.name].to_numpy())
    if not retracts.any():
        return np.zeros(len(groups.order), dtype=bool)
    found: Mask = retracts[groups.order] & groups.meets[groups.key_of]
    return found


def without(groups: KeyGroups, ignored: Mask) -> KeyGroups:
    """Return the groups without the rows that the mask ``ignored`` marks.

    The mask is in the order of ``groups.order``. A key without remaining rows is left out.
    """
    if not ignored.any():
        return groups
    kept = np.flatnonzero(~ignored)
    key_of = groups.key_of[kept]
    is_first = np.append(True, key_of[1:] != key_of[:-1])[: len(kept)]
    return KeyGroups(groups.order[kept], np.flatnonzero(is_first), groups.with_lone)
