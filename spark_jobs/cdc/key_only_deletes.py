# SPDX-License-Identifier: Apache-2.0
"""Refuses deletes that have only their key, for tables with ``sequence.field``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake

__all__ = ["require_sequences"]


def require_sequences(
    schema: lake.TableSchema,
    kinds: pa.Array,
    rows: Mapping[str, pa.Array],
    path: str,
    whole: pa.Array | None = None,
) -> None:
    """Raise ``InvalidRequestError`` if a delete has only its key, in a table with
    ``sequence.field``.

    Such a delete has no sequence. It counts as older than every row with a sequence, so it would
    not remove such a row.

    A delete with a value in another column is accepted, because it has the whole old row. A delete
    for which ``whole`` is true is also accepted.
    """
    options, keys = schema.table_options, schema.primary_keys
    sequence = {name.strip() for name in options.sequence_field} - {*keys}
    has_default = {each.name for each in schema.fields if each.default_value is not None}
    if not (sequence and len(kinds)) or options.ignore_delete or sequence & has_default:
        return
    deletes = pc.equal(kinds, "-D")
    if not options.ignore_update_before:
        deletes = pc.or_(deletes, _moved(kinds, [rows[name] for name in keys if name in rows]))
    if whole is not None:
        deletes = pc.and_not(deletes, whole)
    others = (pc.is_null(values) for name, values in rows.items() if name not in keys)
    if pc.any(reduce(pc.and_, others, deletes)).as_py():
        raise lake.InvalidRequestError(
            f"{path} has a delete with only the key. The delete has no value in "
            f"{' or '.join(map(repr, sorted(sequence)))} (sequence.field of the table), so it "
            "counts as older than every row with a value there, and would not remove such a row. "
            "No row of this commit was written. Let the source send whole old rows (PostgreSQL: "
            "REPLICA IDENTITY FULL), and replace this file by one with whole rows"
        )


def _moved(kinds: pa.Array, keys: Sequence[pa.Array]) -> pa.Array:
    """Return a boolean for each row, true for the old row ``-U`` of an update that changes the key.

    The new row of the update is the next row.
    """
    differs = (pc.not_equal(each[:-1], each[1:]) for each in keys)
    changed = reduce(pc.or_, differs, pa.repeat(False, len(kinds) - 1))
    return pc.and_(pc.equal(kinds, "-U"), pa.concat_arrays([changed, pa.array([False])]))
