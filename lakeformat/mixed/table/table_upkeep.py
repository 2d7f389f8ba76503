# SPDX-License-Identifier: Apache-2.0
"""The methods of a Mixed table for its health, expiry, orphan files and maintenance."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.table.orphans import OrphanRemoval
from lakeformat.mixed.table.newest_runs import newest_runs, newest_state
from lakeformat.mixed.table.table_optimizing import TableOptimizing

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from lakeformat.iceberg.orphans.remove import OrphanOptions
    from lakeformat.mixed.expire.expire_report import MixedExpireReport
    from lakeformat.mixed.health import MixedHealthReport
    from lakeformat.tables.deleter import OnRemoval
    from lakeformat.tables.maintain import MaintainReport
    from lakeformat.tables.maintain.request import OnProgress
    from lakeformat.tables.orphan_report import OrphanReport
    from lakeformat.tables.past_time import PastTime

__all__ = ["TableUpkeep"]


class TableUpkeep(TableOptimizing, OrphanRemoval):
    """The methods of a Mixed table for its health, expiry, orphan files and maintenance."""

    def health(self, *, time_travel: bool = True, unknown: bool = False) -> MixedHealthReport:
        """Return a report on the newest state: verdict, Amoro's score, reasons, advice and numbers.

        Only metadata is read. With ``time_travel`` the manifests of older snapshots are read, too:
        the report then has the size of the files that only older snapshots need, and the number of
        metadata files. Raise ``UnsupportedError`` for ``unknown=True``, which only Paimon tables
        support.
        """
        from lakeformat.mixed.health import check_mixed_health

        if unknown:
            name = self._pair.base.load().places.argument
            raise UnsupportedError(
                f"unknown=True does not work on {self.location}, a Mixed table: "
                f"`lake orphans {name}` or table.remove_orphans() lists the files that "
                "nothing refers to"
            )
        return check_mixed_health(
            self._pair, lambda: newest_runs(self._pair), self.location, time_travel=time_travel
        )

    def maintain(
        self,
        *,
        dry_run: bool = False,
        expire_consumers: PastTime | None = None,
        executor: str | Executor | None = None,
        on_progress: OnProgress | None = None,
    ) -> MaintainReport:
        """Maintain the table: merge changes that are due, expire both stores, remove orphan files.

        The table properties decide what is due. The merge works as ``compact()``, and the expiry as
        ``expire_snapshots()``. Orphan files are removed if they are older than three days. After a
        failed step the next step runs; the report has the error. If ``table-expire.enabled`` is
        false, no snapshot expires. If ``gc.enabled`` of one store is false, no snapshot of either
        store expires, and no orphan file is removed.

        Consumers are deleted only if they have made no progress since ``expire_consumers``: a time,
        or an age such as ``"2 d"``. By default none is deleted.

        ``obstacles`` of the report lists the remaining problems, each with advice. A ``dry_run``
        changes nothing and reports what each step would do.
        """
        from lakeformat.mixed.maintain import MixedProgress, maintain_mixed
        from lakeformat.mixed.table.consumers import consumers_of_pair
        from lakeformat.tables.maintain.request import MaintainRequest

        request = MaintainRequest(
            dry_run=dry_run,
            expire_consumers=expire_consumers,
            executor=executor,
            on_progress=on_progress,
            progress=MixedProgress,
        )
        consumers = consumers_of_pair(self._pair)
        return maintain_mixed(self._pair, lambda: newest_runs(self._pair), consumers, request)

    def _remove_orphans(
        self, options: OrphanOptions, *, dry_run: bool, on_progress: OnRemoval | None
    ) -> OrphanReport:
        from lakeformat.mixed.orphans import remove_mixed_orphans

        return remove_mixed_orphans(self._pair, options, dry_run=dry_run, on_progress=on_progress)

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

        Each store keeps its ``retain_min`` newest snapshots, and the snapshots made since
        ``older_than``: a time, or an age such as ``"2 d"``. By default the table properties decide:
        ``snapshot.keep.duration`` (12 hours) for the base store, ``change.data.ttl.minutes`` (7
        days) for the change store, and ``snapshot.keep.min-count`` (1). ``snapshots`` lists ids of
        further snapshots of either store to remove.

        Changes are removed if they were merged at least an hour ago, and committed longer than
        ``change.data.ttl.minutes`` ago. An expiry keeps changes since the oldest open batch, the
        snapshots that this batch or a consumer still reads, and the snapshots with the record of
        merged changes.

        With ``delete_files=False`` no file is deleted. A ``dry_run`` changes nothing, and its
        report lists each file that would be deleted. But if ``on_progress`` is given, that function
        gets the files, and the report does not list them. Raise ``UnsupportedError`` if the
        property ``gc.enabled`` of a store is false.
        """
        from lakeformat.mixed.expire.expire import MixedExpiryRequest, expire_mixed
        from lakeformat.mixed.table.consumers import consumers_of_pair

        self._require_options("expire_snapshots", self.expire_snapshots, options)
        request = MixedExpiryRequest(
            older_than=older_than,
            retain_min=retain_min,
            snapshots=snapshots,
            delete_files=delete_files,
            unread=consumers_of_pair(self._pair).unread,
        )
        return expire_mixed(
            self._pair,
            lambda: newest_state(self._pair)[:2],
            request,
            dry_run=dry_run,
            on_progress=on_progress,
        )
