# SPDX-License-Identifier: Apache-2.0
"""Maintains a Mixed table: merges changes, expires both stores, and removes orphan files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

from lakeformat.iceberg.expire.expire_report import IcebergExpireReport
from lakeformat.iceberg.health import IcebergHealthReport
from lakeformat.iceberg.health.settings import settings_of
from lakeformat.iceberg.maintain.maintain import maintain_by_steps
from lakeformat.iceberg.maintain.stalled import Consumers
from lakeformat.iceberg.maintain.steps import NOT_OURS, expire_step, ignored
from lakeformat.iceberg.maintain.subject import Maintained
from lakeformat.iceberg.orphans.lost_versions import lost_versions
from lakeformat.iceberg.orphans.remove import OrphanOptions
from lakeformat.mixed.compact.compact import compact_mixed
from lakeformat.mixed.compact.plan import LoadState, plan_merge
from lakeformat.mixed.expire.expire import MixedExpiryRequest, expire_mixed
from lakeformat.mixed.expire.settings import ExpirySettings
from lakeformat.mixed.health import check_mixed_health
from lakeformat.mixed.orphans import remove_mixed_orphans
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.tables.consumers.report import ConsumerState
from lakeformat.tables.maintain.maintain_report import (
    COMPACT,
    EXPIRE,
    ORPHANS,
    MaintainProgress,
    MaintainReport,
    StepOutcome,
    StepReport,
)
from lakeformat.tables.maintain.orphans import of_orphans
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.maintain.run import Step, not_needed, of_compaction

__all__ = ["MixedProgress", "maintain_mixed"]

_NOT_DUE = "no partition is due"
_DISABLED = "'table-expire.enabled' = 'false': snapshots are kept"


class MixedProgress(MaintainProgress):
    """The running step of the maintenance of a Mixed table, and how much of its work is done."""

    __slots__ = ()

    steps: ClassVar[tuple[str, ...]] = (COMPACT, EXPIRE, ORPHANS)


@dataclass(frozen=True, slots=True)
class MaintainedPair(Maintained):
    """A Mixed table; ``handle`` is the handle of its base store."""

    pair: StorePair
    load: LoadState

    kept_by = "'change.data.ttl.minutes' and 'snapshot.keep.duration'"

    def health(self, *, time_travel: bool = False) -> IcebergHealthReport:
        """Return the health report for the newest state of both stores."""
        return check_mixed_health(self.pair, self.load, self.table, time_travel=time_travel)

    def lost(self) -> str | None:
        """Return an explanation if newer metadata files of a store may be lost; otherwise None.

        With an explanation, no orphan file may be deleted.
        """
        change = replace(self.pair.base, pointer=self.pair.change)
        return lost_versions(change) or lost_versions(self.pair.base)

    def refusal(self) -> str | None:
        """Return the reason why no file of the table may be deleted; None if that is allowed."""
        pair = self.pair.load()
        stores = (pair.base.metadata, pair.change.metadata)
        may_expire = all(settings_of(each.properties).may_expire for each in stores)
        return None if may_expire else NOT_OURS


def maintain_mixed(
    pair: StorePair, load: LoadState, consumers: Consumers, request: MaintainRequest
) -> MaintainReport:
    """Run all steps of the maintenance in order; after a failed step the next one runs.

    Each step does only work that is due. After an interruption, call this function again.
    """
    return maintain_by_steps(MaintainedPair(pair.base, consumers, pair, load), _STEPS, request)


def _compact(subject: MaintainedPair, request: MaintainRequest) -> StepReport:
    """Merge the changes and small files that are due by the table properties.

    A dry run only plans.
    """
    if request.dry_run:
        now_millis = subject.environment.now_millis()
        plan = plan_merge(subject.load, "minor", now_millis)
        if not plan.is_due:
            return not_needed(COMPACT, plan.waiting or _NOT_DUE)
        return StepReport(
            step=COMPACT,
            outcome=StepOutcome.PLANNED,
            reason=f"would run a {plan.optimizing.sentence}"
            if plan.units
            else f"would publish a snapshot: {plan.recorded}",
            report=plan,
            files_in=sum(len(unit.rewritten) for unit in plan.units),
            files_out=len(plan.units),
        )
    report = compact_mixed(
        subject.pair,
        subject.load,
        "minor",
        executor=request.executor,
        on_progress=request.units(subject.table, COMPACT),
    )
    return of_compaction(report, report.reason)


def _expire(subject: MaintainedPair, request: MaintainRequest) -> StepReport:
    """Delete consumers as requested, and expire both stores by the table properties."""

    def expire(expired: Collection[ConsumerState]) -> IcebergExpireReport:
        wanted = MixedExpiryRequest(unread=partial(subject.consumers.unread, without=expired))
        return expire_mixed(
            subject.pair,
            lambda: subject.load()[:2],
            wanted,
            dry_run=request.dry_run,
            on_progress=request.removals(subject.table, EXPIRE) or ignored,
        )

    properties = subject.pair.load().base.metadata.properties
    refusal = subject.refusal()
    if refusal is None and not ExpirySettings.of(properties).is_enabled:
        refusal = _DISABLED
    return expire_step(subject.consumers, subject.argument, request, expire, refusal)


def _orphans(subject: MaintainedPair, request: MaintainRequest) -> StepReport:
    """Remove orphan files of both stores that are older than the default age limit."""
    refusal = subject.refusal()
    if refusal is not None:
        return not_needed(ORPHANS, refusal)
    report = remove_mixed_orphans(
        subject.pair,
        OrphanOptions(),
        dry_run=request.dry_run,
        on_progress=request.removals(subject.table, ORPHANS),
    )
    return of_orphans(report, request, subject.argument, usual_age="three days")


_STEPS: Final[dict[str, Step[MaintainedPair]]] = {
    COMPACT: _compact,
    EXPIRE: _expire,
    ORPHANS: _orphans,
}
"""The steps in the order in which they run.

The first merges changes. The second removes changes that are already merged.
"""
