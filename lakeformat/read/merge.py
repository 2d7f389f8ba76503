"""Merge on read: of the rows with one key in a bucket, the last one, unless it is a delete.

The whole bucket is merged at once, on Arrow columns: memory is that of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.key_order import orderable

__all__ = ["merge_last_row"]

SEQUENCE_NUMBER, VALUE_KIND = "_SEQUENCE_NUMBER", "_VALUE_KIND"
_INSERT, _UPDATE_AFTER = 0, 2
_POSITION = "_POSITION"


def merge_last_row(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """One row per key, in key order: the one with the highest sequence number, if not deleted.

    ``rows`` has sequence number and kind before its columns; among equal sequence numbers the
    row that comes later in ``rows`` wins.
    """
    key_columns = {f"_KEY_{i}": orderable(rows[key]) for i, key in enumerate(keys)}
    order = _order(rows, key_columns)
    last = order[_is_last_of_key(key_columns, order)]
    kinds = rows[VALUE_KIND].to_numpy()[last]
    present = (kinds == _INSERT) | (kinds == _UPDATE_AFTER)
    return rows.take(pa.array(last[present])).drop_columns([SEQUENCE_NUMBER, VALUE_KIND])


def _order(rows: pa.Table, key_columns: dict[str, pa.ChunkedArray]) -> npt.NDArray[np.int64]:
    """Positions by key, then sequence number, then arrival; nulls come first."""
    sortable = pa.table(
        {
            **key_columns,
            SEQUENCE_NUMBER: rows[SEQUENCE_NUMBER],
            _POSITION: np.arange(rows.num_rows),
        }
    )
    by = [(name, "ascending", "at_start") for name in sortable.column_names]
    order = pc.sort_indices(sortable, sort_keys=by)
    return np.asarray(order.to_numpy(), dtype=np.int64)


def _is_last_of_key(
    key_columns: dict[str, pa.ChunkedArray], order: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Whether the next position in order has another key."""
    is_last = np.zeros(len(order), dtype=bool)
    is_last[-1:] = True
    for column in key_columns.values():
        ordered = column.take(pa.array(order))
        here, following = ordered.slice(0, max(len(order) - 1, 0)), ordered.slice(1)
        same = pc.fill_null(pc.equal(here, following), False)
        both_null = pc.and_(pc.is_null(here), pc.is_null(following))
        is_last[:-1] |= ~pc.or_(same, both_null).to_numpy().astype(bool)
    return is_last
