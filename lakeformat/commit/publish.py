"""The instant of publication, and finding out what happened when the answer is lost."""

from __future__ import annotations

import logging
from enum import Enum

from lakeformat.errors import UnavailableError
from lakeformat.handle import TableHandle
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.metadata.snapshot_directory import publish_snapshot, read_snapshot_if_present

__all__ = ["Outcome", "publish"]

_log = logging.getLogger(__name__)
_TRIES = 3


class Outcome(Enum):
    """What became of a snapshot somebody tried to publish."""

    COMMITTED = "ours is there"
    LOST = "another writer's is there"
    UNKNOWN = "the storage does not say"


def publish(handle: TableHandle, snapshot: Snapshot) -> Outcome:
    """Publish a snapshot; a lost answer is resolved by reading back, never by guessing."""
    for _ in range(_TRIES):
        try:
            if publish_snapshot(handle.storage, handle.layout, snapshot):
                return Outcome.COMMITTED
        except UnavailableError as error:
            _log.warning("publishing snapshot %d of %s: %s", snapshot.id, handle.uri, error)
        outcome = _read_back(handle, snapshot)
        if outcome is not Outcome.UNKNOWN:
            return outcome
    return Outcome.UNKNOWN


def _read_back(handle: TableHandle, snapshot: Snapshot) -> Outcome:
    try:
        found = read_snapshot_if_present(handle.storage, handle.layout, snapshot.id)
    except UnavailableError:
        return Outcome.UNKNOWN
    if found is None:
        return Outcome.UNKNOWN  # the same content may be tried again
    return Outcome.COMMITTED if found.uuid == snapshot.uuid else Outcome.LOST
