# SPDX-License-Identifier: Apache-2.0
"""Announces an expiry before it starts, and records it until all files are deleted.

``snapshot/.expire-<end>-<id>`` holds the snapshots that expire. An expiry writes this file before
it looks for tags, branches and consumers. The creation of a tag, branch or consumer writes its file
before it looks for intents. So at least one of the two detects the other.

After a crash the intent shows which snapshots were being expired, and the next run finishes the
expiry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lakeformat.errors import CommitConflictError, NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import EXPIRY_INTENT, expiry_intent_name
from lakeformat.paimon.metadata.remedy import Remedy
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.storage.base import LARGE_FILE
from lakeformat.tables.json_file import decode_json_file

__all__ = ["STALE_MILLIS", "Intent", "announce", "read_intents", "refuse_if_expiring", "withdraw"]

STALE_MILLIS = 24 * 60 * 60 * 1000
"""The age in milliseconds at which an unfinished expiry counts as crashed."""
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Intent:
    """The announcement of an expiry of ``snapshots``.

    ``end`` is the id of the first kept snapshot or, if changelogs expire, the first id after them.
    """

    path: str
    end: int
    time_millis: int
    snapshots: tuple[Snapshot, ...]
    keeps_changelogs: bool = False
    """True if the changes of the snapshots remain readable as changelogs."""

    def is_over(self, deleted: Sequence[Snapshot]) -> bool:
        """Return True if the last snapshot of the intent is deleted.

        ``deleted`` has the deleted snapshots of the intent, oldest first. It may lack earlier
        snapshots of the intent, because a rollback may have restored them.
        """
        return bool(deleted) and deleted[-1] == self.snapshots[-1]

    def to_json(self) -> bytes:
        """Return the content of the intent's file as UTF-8."""
        members = [snapshot.members() for snapshot in self.snapshots]
        return json.dumps(
            {
                "end": self.end,
                "timeMillis": self.time_millis,
                "keepsChangelogs": self.keeps_changelogs,
                "snapshots": members,
            }
        ).encode()

    @classmethod
    def from_json(cls, path: str, members: Mapping[str, Any]) -> Intent:
        """Build the intent from the members of its file."""
        return cls(
            path,
            int(members["end"]),
            int(members["timeMillis"]),
            tuple(Snapshot.from_json(each) for each in members["snapshots"]),
            bool(members["keepsChangelogs"]),
        )


def announce(
    handle: TableHandle,
    snapshots: Sequence[Snapshot],
    end: int,
    *,
    changelogs: bool = False,
    keeps_changelogs: bool = False,
) -> Intent:
    """Write the file of an intent to expire ``snapshots``, and return the intent.

    Search only after this call for tags, branches and consumers that need the snapshots. ``end`` is
    the id of the first snapshot that is kept.

    If the snapshots have expired already and their changelogs expire now, set ``changelogs``.
    ``end`` is then the first id after ``snapshots``.
    """
    environment, layout = handle.environment, handle.layout
    directory = layout.changelog_directory if changelogs else layout.snapshot_directory
    path = f"{directory}/{expiry_intent_name(end, environment.new_id())}"
    now = environment.now_millis()
    intent = Intent(path, end, now, tuple(snapshots), keeps_changelogs)
    handle.storage.create(path, intent.to_json())
    return intent


def withdraw(handle: TableHandle, intent: Intent) -> None:
    """Delete the file of an intent, whose expiry is complete or cancelled."""
    handle.storage.delete(intent.path)


def read_intents(handle: TableHandle, *, changelogs: bool = False) -> list[Intent]:
    """Return the intents of this branch to expire snapshots, or changelogs, by ascending ``end``.

    An intent that is withdrawn during the call is skipped. Raise CorruptTableError for a damaged
    file.
    """
    storage, layout, found = handle.storage, handle.layout, []
    directory = layout.changelog_directory if changelogs else layout.snapshot_directory
    for info in storage.list(directory):
        if info.is_directory or not info.name.startswith(EXPIRY_INTENT):
            continue
        try:
            content = storage.read(info.path, LARGE_FILE)
        except NotFoundError:
            continue
        found.append(
            decode_json_file(
                content,
                storage.uri(info.path),
                partial(Intent.from_json, info.path),
                Remedy.INTENT,
            )
        )
    return sorted(found, key=lambda intent: (intent.end, intent.path))


def refuse_if_expiring(handle: TableHandle, snapshot_id: int, what: str) -> None:
    """Raise CommitConflictError if a snapshot has expired or is expiring.

    An expiry that was interrupted more than a day ago does not count. Call this after you have
    written a tag, branch or consumer that needs the snapshot. If it raises, delete the written file
    again. ``what`` names the tag, branch or consumer in the message.
    """
    if _is_expiring(handle, snapshot_id) and not _is_abandoned(handle, snapshot_id):
        raise CommitConflictError(
            f"snapshot {snapshot_id} of {handle.uri} is expiring, so {what} cannot keep it: "
            "choose a later snapshot. If an expiry was interrupted, run it again first"
        )
    if not handle.storage.exists(handle.layout.snapshot(snapshot_id)):
        raise CommitConflictError(
            f"snapshot {snapshot_id} of {handle.uri} has expired meanwhile, so {what} cannot keep "
            "it: choose a later snapshot"
        )


def _is_expiring(handle: TableHandle, snapshot_id: int, *, newer_than: int = 0) -> bool:
    found = {
        snapshot.identity
        for intent in read_intents(handle)
        if intent.time_millis >= newer_than
        for snapshot in intent.snapshots
        if snapshot.id == snapshot_id
    }
    if not found:
        return False
    # After a rollback another snapshot may have the same number.
    there = read_snapshot_if_present(handle.storage, handle.layout, snapshot_id)
    return there is None or there.identity in found


def _is_abandoned(handle: TableHandle, snapshot_id: int) -> bool:
    """Return True if the expiry of the snapshot was interrupted more than a day ago.

    Before it returns True, the function waits a second, in which an expiry may announce the
    snapshot again.
    """
    environment = handle.environment
    limit = environment.now_millis() - STALE_MILLIS
    if _is_expiring(handle, snapshot_id, newer_than=limit):
        return False
    environment.sleep_seconds(_PAUSE_SECONDS)
    return not _is_expiring(handle, snapshot_id, newer_than=limit)
