# SPDX-License-Identifier: Apache-2.0
"""Plans an expiry; it keeps files that tags, branches, kept snapshots and kept changelogs need."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lakeformat.paimon.deletion import find_protection
from lakeformat.paimon.deletion.changelog_ownership import NO_PRODUCER
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.expire.plan import Plan, plan_snapshots
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.schema_file import read_schema, schema_ids
from lakeformat.paimon.metadata.snapshot import Snapshot

__all__ = ["plan_protected"]


def plan_protected(
    handle: TableHandle,
    snapshots: Sequence[Snapshot],
    oldest: Snapshot,
    *,
    keeps_changelogs: bool,
    older: Sequence[Snapshot] | None = None,
) -> Plan:
    """Return the plan to delete ``snapshots``; ``oldest`` is the first kept snapshot after them.

    To resume an interrupted expiry, pass as ``older`` the existing snapshots before ``oldest``.
    Then all files of ``older`` and of ``oldest`` are protected, because a rollback may have
    restored files since the interruption.
    """
    protection = find_protection(
        handle,
        oldest=oldest,
        expiring=len(snapshots),
        with_oldest_state=older is not None,
        changelogs=_changelogs(handle, keeps=keeps_changelogs),
        older=older or (),
    )
    return plan_snapshots(handle, snapshots, oldest, protection, keeps_changelogs=keeps_changelogs)


def _changelogs(handle: TableHandle, *, keeps: bool) -> list[Snapshot]:
    """Return the kept changelogs that may consist of files of the expired snapshots.

    Without a changelog producer, a changelog consists of the files that its commit added. If the
    table has a producer now, it may still have such changelogs from a time without one.
    """
    has_producer = handle.options.changelog_producer != NO_PRODUCER
    if keeps and not has_producer:
        return []
    ids = changelog_ids(handle.storage, handle.layout)
    if not ids or (has_producer and not _had_no_producer(handle)):
        return []
    read = partial(read_changelog_if_present, handle.storage, handle.layout)
    found = [each for each in in_parallel(handle, read, ids) if each is not None]
    return [each for each in found if not has_producer or not each.changelog_manifest_list]


def _had_no_producer(handle: TableHandle) -> bool:
    storage, layout = handle.storage, handle.layout
    schemas = (read_schema(storage, layout, each) for each in schema_ids(storage, layout))
    return any(each.table_options.changelog_producer == NO_PRODUCER for each in schemas)
