# SPDX-License-Identifier: Apache-2.0
"""Long-lived changelogs: ``changelog/changelog-<n>``, each a copy of the expired snapshot <n>.

An expiry writes this copy if it deletes the snapshot but keeps its changes. Readers use only the
changelog list that the copy names, or the delta list if the table has no changelog producer.
"""

from __future__ import annotations

import logging

from lakeformat.errors import CorruptTableError, LakeError, NotFoundError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.hints import numbered_changelogs
from lakeformat.paimon.metadata.remedy import Remedy
from lakeformat.paimon.metadata.snapshot import Snapshot, snapshot_reader
from lakeformat.storage import Storage
from lakeformat.tables.json_file import decode_json_file
from lakeformat.types.sentence import sentence

__all__ = [
    "changelog_ids",
    "read_changelog",
    "read_changelog_if_present",
    "write_changelog",
]

_log = logging.getLogger(__name__)


def changelog_ids(storage: Storage, layout: TableLayout) -> list[int]:
    """Return the numbers of all existing changelogs, ascending."""
    return numbered_changelogs(storage, layout).ids()


def read_changelog(storage: Storage, layout: TableLayout, snapshot_id: int) -> Snapshot:
    """Return the snapshot stored in ``changelog-<snapshot_id>``.

    Raise NotFoundError if the file does not exist, and CorruptTableError if it is damaged.
    """
    path = layout.changelog(snapshot_id)
    try:
        content = storage.read(path)
    except NotFoundError:
        raise NotFoundError(
            f"{storage.uri(layout.root)} has no changelog {snapshot_id}; "
            f"{_there(changelog_ids(storage, layout))}"
        ) from None
    build = snapshot_reader(storage, layout)
    changelog = decode_json_file(content, storage.uri(path), build, Remedy.CHANGELOG)
    if changelog.id != snapshot_id:
        raise CorruptTableError(
            f"{storage.uri(path)} contains snapshot {changelog.id} instead of snapshot "
            f"{snapshot_id}; {Remedy.CHANGELOG}"
        )
    return changelog


def read_changelog_if_present(
    storage: Storage, layout: TableLayout, snapshot_id: int
) -> Snapshot | None:
    """Return the snapshot stored in ``changelog-<snapshot_id>``; None if the file does not exist.

    Raise CorruptTableError if the file is damaged.
    """
    try:
        return read_changelog(storage, layout, snapshot_id)
    except NotFoundError:
        return None


def write_changelog(storage: Storage, layout: TableLayout, snapshot: Snapshot) -> None:
    """Write ``changelog-<n>`` for a snapshot that is about to expire.

    A retry writes the same file again.
    """
    storage.overwrite(layout.changelog(snapshot.id), snapshot.to_json())
    try:
        numbered_changelogs(storage, layout).write_latest_hint(snapshot.id)
    except LakeError as error:
        _log.warning(
            "could not update the LATEST hint of the changelogs of %s: %s No action needed: "
            "readers list the directory",
            *(storage.uri(layout.root), sentence(error)),
        )


def _there(ids: list[int]) -> str:
    if len(ids) == 1:
        return f"only changelog {ids[0]} exists"
    return f"changelogs {ids[0]} to {ids[-1]} exist" if ids else "it has none"
