# SPDX-License-Identifier: Apache-2.0
"""The method ``expire_snapshots`` of a table."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from lakeformat.iceberg.table.history import TableHistory

if TYPE_CHECKING:
    from lakeformat.iceberg.expire.expire_report import IcebergExpireReport
    from lakeformat.tables.deleter import OnRemoval
    from lakeformat.tables.past_time import PastTime

__all__ = ["TableExpiry"]


class TableExpiry(TableHistory):
    """The methods of a table that expire snapshots."""

    def expire_snapshots(
        self,
        *,
        older_than: PastTime | None = None,
        retain_min: int | None = None,
        snapshots: Collection[int] = (),
        clean_metadata: bool = False,
        delete_files: bool = True,
        dry_run: bool = False,
        on_progress: OnRemoval | None = None,
        retain_max: int | None = None,
        limit: int | None = None,
    ) -> IcebergExpireReport:
        """Remove old snapshots and the files that only they need, as Iceberg's Java library does.

        Each branch keeps its ``retain_min`` newest snapshots, and those made since ``older_than``:
        a time, or an age such as ``"2 d"``. By default the table properties decide. Limits of a
        branch or tag take precedence. Commits that a consumer has not read are kept. ``snapshots``
        lists ids of further snapshots to remove. ``clean_metadata`` also removes schemas and
        partition specs that no kept snapshot uses, but never the spec with the highest id. With
        ``delete_files=False`` no file is deleted.

        Files outside of the table are deleted only in directories that the caller allows.
        ``on_progress`` is called with each deleted file. A ``dry_run`` changes nothing, and calls
        ``on_progress`` with each file that would be deleted. Without ``on_progress``, the report
        of a dry run lists these files with the reasons. Raise ``UnsupportedError`` for
        ``retain_max`` and ``limit``, and if ``gc.enabled`` is false. Raise ``InvalidRequestError``
        if a branch or tag is at one of ``snapshots``.
        """
        from lakeformat.iceberg.expire.expire import ExpiryRequest, expire_snapshots
        from lakeformat.iceberg.table.consumers import consumers_of_branches

        self.require_arguments("expire_snapshots", retain_max=retain_max, limit=limit)
        request = ExpiryRequest(
            older_than,
            retain_min,
            snapshots,
            clean_metadata,
            delete_files,
            consumers_of_branches(self._handle).unread,
        )
        return expire_snapshots(self._handle, request, dry_run=dry_run, on_progress=on_progress)
