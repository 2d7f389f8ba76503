# SPDX-License-Identifier: Apache-2.0
"""Parses messages with the whole old rows of updates that move a row to another key or partition.

The delete of a moved row needs all values of the old row, such as its sequence. For other
updates, old values are parsed only in the columns whose change moves a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.cdc.canal import beside
from spark_jobs.cdc.changes import OldRows, field_of
from spark_jobs.cdc.lines import lines_where, parse_block
from spark_jobs.cdc.old_nulls import OLD_NULLS, with_old_nulls

__all__ = ["parse_with_old_rows"]


def parse_with_old_rows(
    block: bytes,
    wanted: Callable[[pa.StructType, Sequence[str]], pa.Schema],
    row: pa.StructType,
    keys: Sequence[str],
    within: Sequence[str],
    nulls: Sequence[str],
    path: str,
) -> pa.Table:
    """Return the messages of a block, with the whole old row of each update that moves a row.

    ``row`` is the type of the new rows. A change of one of the columns ``keys`` moves a row.
    ``wanted`` returns the schema for parsing, given ``row`` and the columns of the old rows.

    An old NULL is usually read as a value that did not change. In the columns ``within`` it is read
    as a change. In the columns ``nulls`` it is read as a change if the update moves a row.

    If a line of the block has several messages, and any update of the block moves a row, the old
    rows of all updates are parsed. ``path`` names the file in errors.
    """
    marked = with_old_nulls(block, within)
    messages = parse_block(marked, wanted(row, keys))
    moved = _moved(messages, keys, path)
    if moved is None or not pc.any(moved).as_py():
        return messages
    names = [each.name for each in row]
    if marked.rstrip(b"\n").count(b"\n") + 1 < len(messages):
        return parse_block(with_old_nulls(marked, nulls), wanted(row, names))
    lines = lines_where(marked, moved, path)
    again = parse_block(with_old_nulls(lines, nulls), wanted(row, names))
    places = pc.if_else(moved, pc.subtract(pc.cumulative_sum(moved.cast(pa.int64())), 1), None)
    for name in ("old", OLD_NULLS):
        messages = messages.drop_columns(name).append_column(name, again[name].take(places))
    return messages


def _moved(messages: pa.Table, keys: Sequence[str], path: str) -> pa.Array | None:
    """Return a boolean for each message, true if an update changes one of ``keys``; None if no
    message has the member ``old``.
    """
    if "old" not in messages.schema.names:
        return None
    data, old, nulls = (messages[name].combine_chunks() for name in ("data", "old", OLD_NULLS))
    of_row = np.arange(len(messages))
    if pa.types.is_list(data.type):
        # ``changes`` ignores or refuses other messages.
        paired = pc.equal(pc.list_value_length(old), pc.list_value_length(data))
        if not pc.any(paired).as_py():
            return None
        of_row = pc.indices_nonzero(paired).to_numpy()
        data, old, nulls = (each.filter(paired) for each in (data, old, nulls))
        of_row = of_row[pc.list_parent_indices(data).to_numpy()]
        old, nulls = (beside(each, data, path) for each in (old, nulls))
        data = data.flatten()
    moved = np.zeros(len(messages), bool)
    for name in keys:
        if (after := field_of(data, name)) is not None:
            changed = OldRows(old, nulls).before(name, after)[1]
            moved[of_row[changed.to_numpy(zero_copy_only=False)]] = True
    return pa.array(moved)
