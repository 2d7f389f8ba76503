# SPDX-License-Identifier: Apache-2.0
"""Changes one branch or tag in a commit that changes nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from lakeformat.errors import AlreadyExistsError, InvalidRequestError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import BRANCH, Reference, Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import remove_reference, set_reference
from lakeformat.iceberg.references.origin import Origin, find_reference
from lakeformat.tables.file_name_part import check_new_branch_name
from lakeformat.tables.position import MAIN_BRANCH
from lakeformat.tables.retain import Retain, to_retained

__all__ = [
    "ReferenceChange",
    "Retention",
    "create_reference",
    "publish",
    "rename_reference",
    "replace_reference",
]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of a branch or tag; where a limit is None, the table properties decide."""

    retain: Retain | None = None
    """An expiry removes the branch or tag when its snapshot is older than this."""
    min_snapshots: int | None = None
    max_snapshot_age: Retain | None = None

    def on(self, reference: Reference) -> Reference:
        """Return the branch or tag with this retention.

        Raise ``InvalidRequestError`` if ``min_snapshots`` is below 1, or for an age that is not a
        duration.
        """
        if self.min_snapshots is not None and self.min_snapshots < 1:
            raise InvalidRequestError(
                f"min_snapshots_to_keep must be at least 1, got {self.min_snapshots!r}"
            )
        return replace(
            reference,
            max_ref_age_ms=_millis(self.retain),
            min_snapshots_to_keep=self.min_snapshots,
            max_snapshot_age_ms=_millis(self.max_snapshot_age),
        )


@dataclass(frozen=True, slots=True)
class ReferenceChange:
    """A branch or tag after a change, with its snapshot."""

    reference: Reference
    snapshot: Snapshot
    action: str
    """``created``, ``kept``, ``replaced`` or ``renamed``."""
    metadata: TableMetadata | None


Plan = Callable[[LoadedMetadata], ReferenceChange]


def publish(handle: TableHandle, plan: Plan, *, dry_run: bool) -> ReferenceChange:
    """Publish the change that ``plan`` makes to the newest metadata, and return the change.

    A dry run publishes nothing.
    """
    if dry_run:
        return plan(handle.load())
    made: list[ReferenceChange] = []

    def change(loaded: LoadedMetadata) -> TableMetadata | None:
        made.append(plan(loaded))
        return made[-1].metadata

    commit_metadata(handle, change)
    found = made[-1]
    done = "renamed a {} to" if found.action == "renamed" else f"{found.action} {{}}"
    _log.info("%s: %s %r", handle.uri, done.format(found.reference.type), found.reference.name)
    return found


def create_reference(
    handle: TableHandle,
    kind: str,
    name: str,
    origin: Origin,
    retention: Retention,
    *,
    exist_ok: bool,
) -> Plan:
    """Return a change that creates a branch or tag of the ``kind``.

    The change raises ``AlreadyExistsError`` if the name exists. With ``exist_ok`` it keeps an
    existing branch or tag of this kind, and raises the error only if the name belongs to the other
    kind. The change raises ``NotFoundError`` if the snapshot does not exist, and
    ``InvalidRequestError`` for a new branch with ``$`` in its name. Raise ``InvalidRequestError``
    for an empty name and for ``main``.
    """
    _check_name(kind, name)

    def plan(loaded: LoadedMetadata) -> ReferenceChange:
        metadata = loaded.metadata
        there = metadata.references.get(name)
        if there is not None:
            return _existing(loaded, there, kind, exist_ok=exist_ok)
        if kind == BRANCH:
            check_new_branch_name(name)
        snapshot = origin.find(loaded)
        new = retention.on(Reference(name, snapshot.snapshot_id, kind))
        changed = set_reference(metadata, new, handle.environment.now_millis())
        return ReferenceChange(new, snapshot, "created", changed)

    return plan


def replace_reference(
    handle: TableHandle, kind: str, name: str, origin: Origin, retention: Retention
) -> Plan:
    """Return a change that moves a branch or tag to another snapshot, with a new retention.

    The change raises ``NotFoundError`` if the branch, tag or snapshot does not exist.
    """

    def plan(loaded: LoadedMetadata) -> ReferenceChange:
        old = find_reference(loaded.metadata, name, kind, loaded.places.uri)
        snapshot = origin.find(loaded)
        new = retention.on(replace(old, snapshot_id=snapshot.snapshot_id))
        now = handle.environment.now_millis()
        changed = None if new == old else set_reference(loaded.metadata, new, now)
        return ReferenceChange(new, snapshot, "kept" if new == old else "replaced", changed)

    return plan


def rename_reference(handle: TableHandle, kind: str, name: str, new_name: str) -> Plan:
    """Return a change that renames a branch or tag.

    The change raises ``NotFoundError`` if ``name`` does not exist, ``AlreadyExistsError`` if
    ``new_name`` exists, and ``InvalidRequestError`` if ``name`` is ``main``. Raise
    ``InvalidRequestError`` if ``new_name`` is empty or ``main``, or has ``$`` and is for a branch.
    """
    _check_name(kind, new_name)
    if kind == BRANCH:
        check_new_branch_name(new_name)

    def plan(loaded: LoadedMetadata) -> ReferenceChange:
        metadata = loaded.metadata
        old = find_reference(metadata, name, kind, loaded.places.uri)
        if (there := metadata.references.get(new_name)) is not None:
            raise _taken(loaded, there)
        without = remove_reference(metadata, name)
        new = replace(old, name=new_name)
        changed = set_reference(without, new, handle.environment.now_millis())
        snapshot = metadata.snapshot(new.snapshot_id)
        assert snapshot is not None
        return ReferenceChange(new, snapshot, "renamed", changed)

    return plan


def _existing(
    loaded: LoadedMetadata, there: Reference, kind: str, *, exist_ok: bool
) -> ReferenceChange:
    if not exist_ok or there.type != kind:
        raise _taken(loaded, there)
    snapshot = loaded.metadata.snapshot(there.snapshot_id)
    assert snapshot is not None
    return ReferenceChange(there, snapshot, "kept", None)


def _taken(loaded: LoadedMetadata, there: Reference) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"{loaded.places.uri} already has the {there.type} {there.name!r}, at snapshot "
        f"{there.snapshot_id}: choose another name, or delete the {there.type} first"
    )


def _check_name(kind: str, name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InvalidRequestError(
            f"the name of a {kind} must be a str that is not empty, got {name!r}"
        )
    if name == MAIN_BRANCH:
        raise InvalidRequestError(f"{name!r} is the name of the main branch: choose another name")


def _millis(retain: Retain | None) -> int | None:
    return None if retain is None else to_retained(retain) // timedelta(milliseconds=1)
