# SPDX-License-Identifier: Apache-2.0
"""Decides by age and number which snapshots, branches and tags an expiry removes.

A branch or tag that is too old is removed, except ``main``. Each remaining branch keeps its newest
snapshots: a minimum number, and all up to a maximum age. Each remaining tag keeps its snapshot. In
the histories of remaining branches, all snapshots that are not kept are removed. Outside of these
histories, a snapshot that is not kept is removed only if it is old enough. Limits that a branch or
tag lacks come from the arguments of the expiry, or else from the table properties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakeformat.iceberg.metadata.snapshot import BRANCH, Reference, Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import int_property
from lakeformat.tables.position import MAIN_BRANCH

__all__ = ["Retention", "overdue_references", "overdue_snapshots", "retention_of"]

_MAX_AGE = "history.expire.max-snapshot-age-ms"
_MIN_KEPT = "history.expire.min-snapshots-to-keep"
_MAX_REFERENCE_AGE = "history.expire.max-ref-age-ms"
_DEFAULTS = {_MAX_AGE: 5 * 24 * 60 * 60 * 1000, _MIN_KEPT: 1, _MAX_REFERENCE_AGE: 2**63 - 1}


@dataclass(frozen=True, slots=True)
class Retention:
    """The limits of an expiry; a branch or tag may have limits of its own instead."""

    now_millis: int
    oldest_millis: int
    """Snapshots that were committed at this time, in epoch milliseconds, or later are kept."""
    least: int
    """The least number of snapshots that each branch keeps."""
    reference_age_millis: int
    """A branch or tag is removed when its snapshot is older than this many milliseconds."""


def retention_of(
    properties: Mapping[str, str],
    now_millis: int,
    *,
    oldest_millis: int | None = None,
    least: int | None = None,
) -> Retention:
    """Return the limits of an expiry.

    If ``oldest_millis`` or ``least`` is None, this limit comes from the table properties. Raise
    ``InvalidRequestError`` for a property with an invalid value.
    """

    def number(key: str) -> int:
        return int_property(properties, key, _DEFAULTS[key])

    return Retention(
        now_millis,
        now_millis - number(_MAX_AGE) if oldest_millis is None else oldest_millis,
        number(_MIN_KEPT) if least is None else least,
        number(_MAX_REFERENCE_AGE),
    )


def overdue_references(metadata: TableMetadata, retention: Retention) -> list[Reference]:
    """Return the branches and tags that are too old, or whose snapshot does not exist.

    ``main`` is never among them.
    """
    return [each for each in metadata.references.values() if _is_overdue(metadata, each, retention)]


def overdue_snapshots(metadata: TableMetadata, retention: Retention) -> list[Snapshot]:
    """Return the snapshots that an expiry removes: old ones that no branch or tag keeps."""
    kept: set[int] = set()
    reachable: set[int] = set()
    for each in metadata.references.values():
        if _is_overdue(metadata, each, retention):
            continue
        kept |= {found.snapshot_id for found in _kept_for(metadata, each, retention)}
        if each.type == BRANCH:
            reachable |= {found.snapshot_id for found in metadata.ancestry(each.snapshot_id)}
    return [
        each
        for each in metadata.snapshots
        if each.snapshot_id not in kept
        and (each.snapshot_id in reachable or each.timestamp_ms < retention.oldest_millis)
    ]


def _is_overdue(metadata: TableMetadata, reference: Reference, retention: Retention) -> bool:
    if reference.name == MAIN_BRANCH:
        return False
    snapshot = metadata.snapshot(reference.snapshot_id)
    oldest = reference.max_ref_age_ms or retention.reference_age_millis
    return snapshot is None or retention.now_millis - snapshot.timestamp_ms > oldest


def _kept_for(
    metadata: TableMetadata, reference: Reference, retention: Retention
) -> Iterator[Snapshot]:
    least = reference.min_snapshots_to_keep or retention.least
    oldest = retention.oldest_millis
    if reference.max_snapshot_age_ms:
        oldest = retention.now_millis - reference.max_snapshot_age_ms
    for place, each in enumerate(metadata.ancestry(reference.snapshot_id)):
        is_tag = reference.type != BRANCH
        if place and (is_tag or (place >= least and each.timestamp_ms < oldest)):
            return
        yield each
