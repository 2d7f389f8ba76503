# SPDX-License-Identifier: Apache-2.0
"""Fills in numbers that manifest entries inherit from the manifest list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError
from lakeformat.types.arrow_memory import array_of
from lakeformat.types.unaligned import Positions

__all__ = ["ADDED", "DELETED", "EXISTING", "inherited", "with_inherited"]

EXISTING, ADDED, DELETED = 0, 1, 2
"""The values of ``status``."""


def inherited(
    entries: pa.Table, manifests: Sequence[Mapping[str, Any]], counts: Sequence[int]
) -> dict[str, pa.Array]:
    """Return the columns of inherited numbers by name, with missing values filled in.

    ``entries`` are the entries of ``manifests``, one manifest after the other. ``counts`` has the
    number of entries of each manifest. Raise ``CorruptTableError`` if an entry lacks a sequence
    number that it cannot inherit. Raise it also if row ids cannot be assigned, because the number
    of rows of an entry is negative.
    """
    rows: Positions = np.repeat(np.arange(len(manifests)), counts)
    status = entries.column("status").combine_chunks()
    number = _listed(manifests, "sequence_number", rows)
    # Version 1 has no sequence numbers; later versions leave them out only for added files.
    inherits = pc.or_(pc.equal(number, 0), pc.equal(status, ADDED))
    ids = entries.column("snapshot_id").combine_chunks()
    found = {"snapshot_id": pc.coalesce(ids, _listed(manifests, "added_snapshot_id", rows))}
    for name in ("sequence_number", "file_sequence_number"):
        own = entries.column(name).combine_chunks()
        filled = pc.if_else(inherits, pc.coalesce(own, number), own)
        if filled.null_count:
            raise CorruptTableError(
                f"manifest {manifests[0]['manifest_path']} has an entry without {name}, but the "
                "status of the entry is not ADDED; restore this manifest from a backup"
            )
        found[name] = filled
    found["first_row_id"] = _first_row_ids(entries, manifests, rows, status)
    return found


def with_inherited(
    entries: pa.Table, manifests: Sequence[Mapping[str, Any]], counts: Sequence[int]
) -> pa.Table:
    """Return the entries with inherited numbers filled in.

    Arguments and errors are those of ``inherited``.
    """
    for name, column in inherited(entries, manifests, counts).items():
        place = entries.schema.get_field_index(name)
        entries = entries.set_column(place, entries.schema.field(place), column)
    return entries


def _listed(manifests: Sequence[Mapping[str, Any]], name: str, rows: Positions) -> pa.Array:
    """Return a column with one value for each entry, taken from the row of its manifest.

    ``manifests`` are rows of a manifest list, and ``name`` is the field to take. ``rows`` has, for
    each entry, the index of its manifest.
    """
    return pa.array([each[name] for each in manifests], pa.int64()).take(array_of(rows))


def _first_row_ids(
    entries: pa.Table, manifests: Sequence[Mapping[str, Any]], rows: Positions, status: pa.Array
) -> pa.Array:
    """Return the first row id of each entry.

    Live files without a stored first row id get consecutive ranges of row ids. In each manifest
    the first of these ranges begins at the first row id of the manifest.
    """
    first = _listed(manifests, "first_row_id", rows)
    if first.null_count == len(first):
        return pa.nulls(len(first), pa.int64())
    ids = pc.if_else(first.is_valid(), entries.column("first_row_id").combine_chunks(), None)
    is_live = pc.and_(pc.not_equal(status, DELETED), first.is_valid())
    numbered = pc.and_(is_live, ids.is_null()).to_numpy(zero_copy_only=False)
    counts = np.where(numbered, entries.column("record_count").to_numpy(), 0)
    if counts.min(initial=0) < 0:
        raise CorruptTableError(
            f"manifest {manifests[0]['manifest_path']} has an entry with the record_count "
            f"{counts.min()}, so row ids cannot be assigned; restore this manifest from a backup"
        )
    before = np.cumsum(counts) - counts
    starts = before - before[np.searchsorted(rows, rows)]  # start at 0 in each manifest
    return pc.if_else(array_of(numbered), pc.add(first, array_of(starts)), ids)
