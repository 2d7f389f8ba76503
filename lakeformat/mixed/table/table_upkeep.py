# SPDX-License-Identifier: Apache-2.0
"""The methods of a Mixed table that delete what it needs no longer."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from lakeformat.mixed.table.newest_runs import newest_state
from lakeformat.mixed.table.table_optimizing import TableOptimizing, require_arguments

if TYPE_CHECKING:
    from lakeformat.mixed.expire.expire_report import MixedExpireReport
    from lakeformat.tables.deleter import OnRemoval
    from lakeformat.tables.past_time import PastTime

__all__ = ["TableUpkeep"]


class TableUpkeep(TableOptimizing):
    """The methods of a Mixed table that delete what it needs no longer."""

    def expire_snapshots(
        self,
        *,
        older_than: PastTime | None = None,
        retain_min: int | None = None,
        snapshots: Collection[int] = (),
        delete_files: bool = True,
        dry_run: bool = False,
        on_progress: OnRemoval | None = None,
        **options: Any,
    ) -> MixedExpireReport:
        """Remove old snapshots of both stores, and changes that the base store has merged.

        Each store keeps its ``retain_min`` newest snapshots, and those made since ``older_than``: a
        time, or an age such as ``"2 d"``. By default the table properties decide:
        ``snapshot.keep.duration`` (12 hours) for the base store, ``change.data.ttl.minutes`` (7
        days) for the change store, and ``snapshot.keep.min-count`` (1). ``snapshots`` lists ids of
        further snapshots of either store to remove.

        Changes are removed once they are merged for an hour and were committed longer than
        ``change.data.ttl.minutes`` ago. Changes since the oldest open batch are kept, and so are
        the snapshots that it or a consumer still reads, and those with the record of merged
        changes.

        With ``delete_files=False`` no file is deleted. A ``dry_run`` changes nothing; its report
        lists each file that would be deleted, unless ``on_progress`` is given, which then gets the
        files. If a store has the property ``gc.enabled=false``, the call is refused.
        """
        from lakeformat.iceberg.table.consumers import ConsumersOfBranches
        from lakeformat.mixed.expire.expire import MixedExpiryRequest, expire_mixed
        from lakeformat.mixed.write.write_changes import change_handle

        require_arguments("expire_snapshots", self.expire_snapshots, options)
        request = MixedExpiryRequest(
            older_than=older_than,
            retain_min=retain_min,
            snapshots=snapshots,
            delete_files=delete_files,
            unread=ConsumersOfBranches(change_handle(self._pair)).unread,
        )
        return expire_mixed(
            self._pair,
            lambda: newest_state(self._pair)[:2],
            request,
            dry_run=dry_run,
            on_progress=on_progress,
        )
