# SPDX-License-Identifier: Apache-2.0
"""The snapshot that a call chooses by id, position, tag or time, and the condition on its rows."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.read.condition_fields import condition_fields
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.time_travel import find_state
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.table.branch_history import BranchHistory
from lakeformat.rows.conditions.filter import (
    PredicateFilter,
    Where,
    as_predicate,
    bind_predicate,
)
from lakeformat.tables.moment import Moment
from lakeformat.tables.position import AnyPosition, Position

__all__ = ["chosen_state", "row_filter"]


def chosen_state(
    loaded: LoadedMetadata,
    history: BranchHistory,
    *,
    snapshot: AnyPosition | None = None,
    tag: str | None = None,
    as_of: Moment | None = None,
) -> TableState:
    """Return what a scan reads: the newest snapshot of the branch, unless another is chosen."""
    is_chosen = any(each is not None for each in (snapshot, tag, as_of))
    has_snapshots = bool(history.snapshots)
    return find_state(
        loaded.places,
        loaded.metadata,
        snapshot=None if snapshot is None else _snapshot_id(loaded, history, snapshot),
        tag=tag,
        branch=None if is_chosen or not has_snapshots else history.branch,
        as_of=as_of,
    )


def row_filter(schema: Schema, where: Where | None) -> PredicateFilter | None:
    """Return the checked condition; None selects all rows."""
    if where is None:
        return None
    return bind_predicate(as_predicate(where), condition_fields(schema))


def _snapshot_id(loaded: LoadedMetadata, history: BranchHistory, chosen: AnyPosition) -> int:
    """Return the id of a snapshot that is given by its id, its sequence number or a position."""
    if not isinstance(chosen, Position):
        if isinstance(chosen, bool) or not isinstance(chosen, int):
            raise InvalidRequestError(f"snapshot must be a snapshot id or a position: {chosen!r}")
        if loaded.metadata.snapshot(chosen) is not None:
            return chosen
    number = history.number(chosen)
    upto = [each for each in history.snapshots if each.snapshot.sequence_number <= number]
    if isinstance(chosen, int):
        upto = [each for each in upto if each.snapshot.sequence_number == number > 0]
        return upto[-1].snapshot_id if upto else chosen
    if not upto:
        raise NotFoundError(
            f"{loaded.places.uri} has no snapshot up to position {chosen}: it may have expired"
        )
    return upto[-1].snapshot_id
