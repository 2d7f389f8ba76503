# SPDX-License-Identifier: Apache-2.0
"""The retention of a table: the snapshots that an expiry by its own properties would remove.

A branch keeps its newest snapshots by number and by age. A tag, and a snapshot without a branch or
tag, follow the age alone. A branch or tag that is too old itself keeps nothing; ``main`` never is.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakeformat.iceberg.metadata.snapshot import Reference, Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import int_property
from lakeformat.tables.position import MAIN_BRANCH

__all__ = ["overdue_snapshots"]

_MAX_AGE = "history.expire.max-snapshot-age-ms"
_MIN_KEPT = "history.expire.min-snapshots-to-keep"
_MAX_REFERENCE_AGE = "history.expire.max-ref-age-ms"
_DEFAULTS = {_MAX_AGE: 5 * 24 * 60 * 60 * 1000, _MIN_KEPT: 1, _MAX_REFERENCE_AGE: 2**63 - 1}


def overdue_snapshots(metadata: TableMetadata, now_millis: int) -> list[Snapshot]:
    """Return the snapshots that are beyond the retention; ``InvalidRequestError`` for a property
    with an invalid value.
    """
    references = [
        each for each in metadata.references.values() if _is_kept(metadata, each, now_millis)
    ]
    kept: set[int] = set()
    reachable: set[int] = set()
    for each in references:
        reachable |= {found.snapshot_id for found in metadata.ancestry(each.snapshot_id)}
        kept |= {found.snapshot_id for found in _kept_for(metadata, each, now_millis)}
    oldest = now_millis - _number(metadata, _MAX_AGE)
    return [
        each
        for each in metadata.snapshots
        if each.snapshot_id not in kept
        and (each.snapshot_id in reachable or each.timestamp_ms < oldest)
    ]


def _is_kept(metadata: TableMetadata, reference: Reference, now_millis: int) -> bool:
    if reference.name == MAIN_BRANCH:
        return True
    snapshot = metadata.snapshot(reference.snapshot_id)
    oldest = reference.max_ref_age_ms or _number(metadata, _MAX_REFERENCE_AGE)
    return snapshot is not None and now_millis - snapshot.timestamp_ms <= oldest


def _kept_for(metadata: TableMetadata, reference: Reference, now_millis: int) -> Iterator[Snapshot]:
    """Yield the snapshots that a branch or tag keeps."""
    least = reference.min_snapshots_to_keep or _number(metadata, _MIN_KEPT)
    oldest = now_millis - (reference.max_snapshot_age_ms or _number(metadata, _MAX_AGE))
    for place, each in enumerate(metadata.ancestry(reference.snapshot_id)):
        is_tag = reference.type != "branch"
        if place and (is_tag or (place >= least and each.timestamp_ms < oldest)):
            return
        yield each


def _number(metadata: TableMetadata, key: str) -> int:
    return int_property(metadata.properties, key, _DEFAULTS[key])
