# SPDX-License-Identifier: Apache-2.0
"""Makes the report of a compaction from the results of its units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lakeformat.errors import LakeError
from lakeformat.paimon.compact.commit import Groups, Made
from lakeformat.paimon.compact.compact_report import BucketOutcome, CompactReport
from lakeformat.paimon.compact.other_compactor import OtherCompactor
from lakeformat.paimon.compact.unit import CompactUnit, NotChosen
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, FileSource
from lakeformat.types.count_text import counted

__all__ = ["compacted", "failed", "not_chosen", "refused", "report_of"]

_SHOWN_REASONS = 3

_ORDER = ("compacted", "failed", "refused", "not chosen")
"""The order in which a report lists the outcomes of buckets."""


def compacted(made: Made) -> BucketOutcome:
    """Return the outcome of a unit that was published."""
    unit, new = made.unit, _written(made)
    told = [file for each in made.messages for file in each.compact_changelog_files]
    return BucketOutcome(
        partition=unit.path,
        bucket=unit.bucket,
        outcome="compacted",
        reason=unit.reason,
        rows_in=unit.rows,
        rows_out=sum(file.row_count for file in new),
        bytes_in=unit.bytes,
        bytes_out=_size(new),
        files_in=len(unit.rewritten),
        files_out=len(new),
        files_moved=len(unit.moved),
        changelog_rows=sum(file.row_count for file in told),
        changelog_files=len(told),
        changelog_bytes=_size(told),
        fresh_bytes_in=_size([file for file in _all(unit) if _is_fresh(file)]),
        millis=made.millis,
    )


def refused(unit: CompactUnit, error: LakeError) -> BucketOutcome:
    """Return the outcome of a unit that was not published because of a conflict."""
    return _without_result(unit, "refused", str(error))


def failed(unit: CompactUnit, error: LakeError) -> BucketOutcome:
    """Return the outcome of a unit that raised an error."""
    return _without_result(unit, "failed", str(error))


def not_chosen(other: NotChosen) -> BucketOutcome:
    """Return the outcome of a bucket that the plan left out."""
    return BucketOutcome(
        partition=other.path, bucket=other.bucket, outcome="not chosen", reason=other.reason
    )


def report_of(
    table: str,
    strategy: str,
    groups: Sequence[Groups],
    buckets: Sequence[BucketOutcome],
    *,
    unfinished: str | None,
    guarantee: str,
    earlier: tuple[int, ...],
    plan_millis: int,
    run_millis: int,
    millis: int,
    other: OtherCompactor | None = None,
) -> CompactReport:
    """Return the report of a compaction; its sums count only buckets that were compacted.

    ``earlier`` are the ids of snapshots of earlier attempts. ``unfinished`` is None if the
    compaction is complete, and ``other`` is None if no other program compacts the table.
    """
    done = [each for each in buckets if each.outcome == "compacted"]
    fresh = sum(each.fresh_bytes_in for each in done)
    written = sum(each.bytes_out for each in done)
    snapshots = tuple(number for each in groups for number in each.snapshot_ids)
    return CompactReport(
        table=table,
        strategy=strategy,
        snapshot_ids=snapshots,
        earlier_snapshot_ids=earlier,
        rows_in=sum(each.rows_in for each in done),
        rows_out=sum(each.rows_out for each in done),
        bytes_in=sum(each.bytes_in for each in done),
        bytes_out=written,
        files_in=sum(each.files_in for each in done),
        files_out=sum(each.files_out for each in done),
        files_moved=sum(each.files_moved for each in done),
        changelog_rows=sum(each.changelog_rows for each in done),
        changelog_files=sum(each.changelog_files for each in done),
        changelog_bytes=sum(each.changelog_bytes for each in done),
        changelog_guarantee=guarantee,
        write_amplification=round(written / fresh, 3) if fresh else None,
        unfinished=unfinished,
        rounds=len(groups),
        groups=sum(each.tried for each in groups),
        groups_refused=sum(each.conflicts for each in groups),
        plan_millis=plan_millis,
        run_millis=run_millis,
        commit_millis=sum(each.millis for each in groups),
        millis=millis,
        buckets=tuple(buckets),
        other_compactor=other,
        reason="; ".join(filter(None, [_reason(buckets, snapshots), _tried(earlier), unfinished])),
    )


def _reason(buckets: Sequence[BucketOutcome], snapshots: Sequence[int]) -> str:
    if not buckets:
        return "nothing to do: the chosen buckets have no data file"
    # A bucket of an append table has an outcome for each group of files.
    places = {(each.outcome, each.partition, each.bucket) for each in buckets}
    counts = Counter(outcome for outcome, *_ in places)
    if counts.keys() == {"not chosen"}:
        reasons = [*dict.fromkeys(each.reason for each in buckets)]
        more = "; …" if len(reasons) > _SHOWN_REASONS else ""
        return f"nothing to do: {'; '.join(reasons[:_SHOWN_REASONS])}{more}"
    (first, count), *others = sorted(counts.items(), key=lambda each: _ORDER.index(each[0]))
    parts = [f"{counted(count, 'bucket')} {first}", *(f"{more} {what}" for what, more in others)]
    said = ", ".join(parts)
    numbers = ", ".join(map(str, snapshots))
    many = "s" if len(snapshots) > 1 else ""
    published = f"published as snapshot{many} {numbers}" if snapshots else "none published"
    return f"{said}, {published}"


def _tried(earlier: Sequence[int]) -> str | None:
    if not earlier:
        return None
    many = "s" if len(earlier) > 1 else ""
    return f"an earlier attempt had published snapshot{many} {', '.join(map(str, earlier))}"


def _without_result(unit: CompactUnit, outcome: str, reason: str) -> BucketOutcome:
    return BucketOutcome(partition=unit.path, bucket=unit.bucket, outcome=outcome, reason=reason)


def _written(made: Made) -> list[DataFileMeta]:
    kept = {file.file_name for each in made.messages for file in each.compact_before}
    after = [file for each in made.messages for file in each.compact_after]
    return [file for file in after if file.file_name not in kept]


def _all(unit: CompactUnit) -> list[DataFileMeta]:
    return [entry.file for entry in unit.files]


def _is_fresh(file: DataFileMeta) -> bool:
    return file.file_source != FileSource.COMPACT


def _size(files: Sequence[DataFileMeta]) -> int:
    return sum(file.file_size for file in files)
