# SPDX-License-Identifier: Apache-2.0
"""Finds the state of both stores that a scan reads: the newest, or one by position or time."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.errors import NotFoundError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.schema import Schema
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.stores.optimized_sequences import (
    optimized_sequences,
    require_possible_sequences,
)
from lakeformat.mixed.stores.store_pair import LoadedPair
from lakeformat.mixed.table.mixed_history import MixedHistory
from lakeformat.tables.moment import Moment
from lakeformat.tables.position import AnyPosition, Position

__all__ = ["find_state"]


def find_state(
    pair: LoadedPair,
    history: MixedHistory,
    *,
    snapshot: AnyPosition | None = None,
    as_of: Moment | None = None,
) -> MixedState:
    """Return the newest state of a table, or with ``snapshot`` or ``as_of`` an earlier state.

    An earlier state has the columns that the table had then. Raise ``NotFoundError`` if the state
    has expired or never existed.
    """
    if snapshot is None and as_of is None:
        base, change = pair.base.metadata.current_snapshot, pair.change.metadata.current_snapshot
        return _state(pair, base, change, pair.base.metadata.schema, history.head)
    if snapshot is not None:
        found = history.at(snapshot)
    else:
        assert as_of is not None
        found = history.at_time(as_of)
    schema = _schema_at(pair, found.base, found.change)
    state = _state(pair, found.base, found.change, schema, found.position)
    if found.position != history.head:
        _require_current_once(state, history)
    return state


def _require_current_once(state: MixedState, history: MixedHistory) -> None:
    """Raise ``NotFoundError`` if the base store of ``state`` has merged changes that its change
    store lacks.

    The table never had this state. A read of it could return only a part of a commit.
    """
    change = state.change.snapshot
    number = 0 if change is None else change.sequence_number
    newest = max(state.merged.sequences.values(), default=0)
    if newest > number:
        raise NotFoundError(
            f"{history.uri} never had the state {state.position}: in this state the base store "
            f"would have merged the changes up to sequence number {newest}, but the change store "
            f"would end at {number}. The clocks of the writers differ, so the commits are not in "
            "the order of their times. Choose a later one of the positions that snapshots() lists; "
            f"the newest is {history.head}"
        )


def _state(
    pair: LoadedPair,
    base: Snapshot | None,
    change: Snapshot | None,
    schema: Schema,
    position: Position,
) -> MixedState:
    merged = optimized_sequences(pair.base, base)
    require_possible_sequences(pair.base, pair.change, merged)
    return MixedState(
        base=_store(pair.base, base, schema),
        change=_store(pair.change, change, schema),
        key=pair.key,
        merged=merged,
        position=position,
        version=pair.version,
    )


def _store(loaded: LoadedMetadata, snapshot: Snapshot | None, schema: Schema) -> TableState:
    return TableState(loaded.places, loaded.metadata, snapshot, schema)


def _schema_at(pair: LoadedPair, base: Snapshot | None, change: Snapshot | None) -> Schema:
    """Return the schema of the newer of two snapshots, without columns that only the change store
    has.

    A change of the schema reaches the change store first.
    """
    if base is None or (change is not None and change.timestamp_ms > base.timestamp_ms):
        if change is None:
            return pair.base.metadata.schema
        known = {each.id for schema in pair.base.metadata.schemas for each in schema.fields}
        found = pair.change.metadata.schema_at(change)
        return replace(found, fields=tuple(each for each in found.fields if each.id in known))
    return pair.base.metadata.schema_at(base)
