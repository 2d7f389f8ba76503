# SPDX-License-Identifier: Apache-2.0
"""Methods of ``Table`` for the expiry of snapshots, and for consumers, which keep snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.deprecation import renamed_argument
from lakeformat.paimon.table.reads import TableReads

if TYPE_CHECKING:
    from lakeformat.paimon.consumers import TableConsumers
    from lakeformat.paimon.deletion import OnRemoval
    from lakeformat.paimon.expire import ExpireReport
    from lakeformat.tables.past_time import PastTime

__all__ = ["TableExpiry"]


class TableExpiry(TableReads):
    """Methods of ``Table`` for the expiry of snapshots, and for consumers, which keep snapshots."""

    @renamed_argument("tell", "on_progress")
    def expire_snapshots(
        self,
        *,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: PastTime | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        on_progress: OnRemoval | None = None,
    ) -> ExpireReport:
        """Remove old snapshots with the files that only they need; the newest is always kept.

        At least ``retain_min`` and at most ``retain_max`` snapshots are kept. Between these two
        limits, a snapshot expires if the next snapshot was committed before ``older_than``: a time,
        or an age such as ``"2 d"``. Missing arguments default to the table options. Snapshots that
        a consumer needs are kept, and so are the files that a tag or a branch needs. At most
        ``limit`` snapshots and ``limit`` changelogs expire. Raise InvalidRequestError for a number
        below 1, or if ``retain_min`` exceeds ``retain_max``.

        A ``dry_run`` deletes nothing, and its report has each file with the reason. If you pass
        ``on_progress``, the report has no files: the function is called with each file, deleted or
        planned. The rest of an interrupted expiry is deleted first. A file that cannot be deleted
        is counted, and the next call tries it again.
        """
        from lakeformat.paimon.expire import expire_snapshots

        return expire_snapshots(
            self._handle,
            retain_max=retain_max,
            retain_min=retain_min,
            older_than=older_than,
            limit=limit,
            dry_run=dry_run,
            on_progress=on_progress,
        )

    @property
    def consumers(self) -> TableConsumers:
        """The consumers of the table: readers of changes and their progress."""
        from lakeformat.paimon.consumers import TableConsumers

        return TableConsumers(self._handle)
