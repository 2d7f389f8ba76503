# SPDX-License-Identifier: Apache-2.0
"""Paimon's procedures, which ``call.py`` calls by name.

Each procedure is a function that takes the table or the catalog. Its keyword arguments are named as
those of Paimon's Spark procedure. Methods of the table or the catalog do the work.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import lakeformat as lake
from lakeformat.tables.named_once import named_once

__all__ = ["PROCEDURES", "Procedure"]

_Does = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure; its arguments are those of the function ``does``."""

    name: str
    does: _Does
    of_table: bool = True
    in_tasks: bool = False
    """True if Spark's tasks can do the work. ``does`` then gets an executor as 2nd argument."""

    @property
    def arguments(self) -> list[str]:
        """The names of all arguments: ``table`` if needed, then the required, then the optional."""
        parameters = inspect.signature(self.does).parameters.values()
        own = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        own.sort(key=lambda p: p.default is not p.empty)
        return [*(["table"] if self.of_table else []), *(p.name for p in own)]

    @property
    def needed(self) -> list[str]:
        """The names of the arguments that the caller must give."""
        known = inspect.signature(self.does).parameters
        return [n for n in self.arguments if n not in known or known[n].default is known[n].empty]

    @property
    def meaning(self) -> str:
        """The description of the procedure, as one line."""
        return " ".join((self.does.__doc__ or "").split())


def _partitions(text: str) -> list[dict[str, str]]:
    """Return the partitions of ``"dt=1,h=2;dt=3"``; raise ``InvalidRequestError`` for bad text."""
    found = []
    for one in text.split(";"):
        pairs = [pair.partition("=") for pair in one.split(",")]
        if not all(name.strip() and sign for name, sign, _ in pairs):
            raise lake.InvalidRequestError(
                f"partitions must be values such as 'dt=2024-01-01,h=1;dt=2024-01-02', got {text!r}"
            )
        found.append(named_once("column", ((n.strip(), v.strip()) for n, _, v in pairs)))
    return found


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _compact(
    table: lake.Table,
    executor: Any,
    *,
    partitions: str | None = None,
    where: str | None = None,
    compact_strategy: str = "full",
    order_strategy: str = "none",
    order_by: str | None = None,
    partition_idle_time: str | None = None,
) -> Any:
    """Merge files. With ``compact_strategy='full'``, the default, merge all files of each bucket of
    a primary-key table, or the small files of an append table; with ``'minor'``, merge the files
    that the table's options select. With ``order_strategy`` (``order``, ``zorder`` or ``hilbert``)
    and ``order_by``, such as ``'id,ts'``, sort the rows of an append table. With
    ``partition_idle_time``, such as ``'1 d'``, compact only partitions whose newest file is older
    than this; the strategy is then always ``full``.
    """
    is_sorted = order_strategy.lower() != "none"
    if order_by and not is_sorted:
        raise lake.InvalidRequestError(
            f"procedure 'compact': order_by={order_by!r} has no effect without order_strategy: add "
            "order_strategy='order', 'zorder' or 'hilbert', or leave out order_by"
        )
    return table.compact(
        strategy=compact_strategy,
        where=where,
        partitions=None if partitions is None else _partitions(partitions),
        idle=partition_idle_time,
        order_by=_names(order_by or "") if is_sorted else None,
        order_strategy=order_strategy if is_sorted else None,
        executor=executor,
    )


def _compact_manifest(table: lake.Table, *, dry_run: bool = False) -> Any:
    """Merge small manifests into larger ones."""
    return table.compact_manifests(dry_run=dry_run)


def _rescale(
    table: lake.Table,
    executor: Any,
    *,
    bucket_num: int | None = None,
    partitions: str | None = None,
    where: str | None = None,
) -> Any:
    """Rewrite partitions so that each has ``bucket_num`` buckets. Default: all partitions, and the
    number in the option ``bucket``.
    """
    chosen = None if partitions is None else _partitions(partitions)
    return table.rescale(bucket=bucket_num, partitions=chosen, where=where, executor=executor)


def _rewrite_file_index(table: lake.Table, *, where: str | None = None) -> Any:
    """Give existing files exactly the indexes that the table options ``file-index.*`` declare."""
    return table.rewrite_file_indexes(where=where)


def _expire_snapshots(
    table: lake.Table,
    *,
    retain_max: int | None = None,
    retain_min: int | None = None,
    older_than: str | int | None = None,
    max_deletes: int | None = None,
) -> Any:
    """Delete old snapshots, at most ``max_deletes``, and the files that only these need. For an
    argument that you leave out, a table option ``snapshot.*`` decides.
    """
    return table.expire_snapshots(
        retain_max=retain_max, retain_min=retain_min, older_than=older_than, limit=max_deletes
    )


def _expire_partitions(
    table: lake.Table,
    *,
    expiration_time: str | None = None,
    timestamp_formatter: str | None = None,
    timestamp_pattern: str | None = None,
    expire_strategy: str | None = None,
    max_expires: int | None = None,
) -> Any:
    """Delete the rows of partitions that are older than ``expiration_time``, in at most
    ``max_expires`` partitions. For an argument that you leave out, a table option ``partition.*``
    decides.
    """
    return table.expire_partitions(
        expiration_time=expiration_time,
        timestamp_formatter=timestamp_formatter,
        timestamp_pattern=timestamp_pattern,
        strategy=expire_strategy,
        max_num=max_expires,
    )


def _expire_tags(table: lake.Table, *, older_than: str | int | None = None) -> Any:
    """Delete the tags whose lifetime has ended; with ``older_than`` also tags created before that
    time. Keep tags at which a branch began, and tags that protect files restored by a rollback.
    """
    return table.tags.expire(older_than=older_than)


def _remove_orphan_files(
    table: lake.Table,
    executor: Any,
    *,
    older_than: str | int | None = None,
    dry_run: bool = False,
) -> Any:
    """Delete unreferenced files that were last changed before ``older_than``, which must be at
    least one day ago. Default: one day before the newest commit.
    """
    return table.remove_orphans(older_than, dry_run, executor=executor)


def _remove_unexisting_files(table: lake.Table, *, dry_run: bool = False) -> Any:
    """Remove the references to missing and truncated data files; the rows of these files are lost.
    Refused if more than half of the files are missing or truncated.
    """
    return table.remove_missing_files(dry_run)


def _remove_unexisting_manifests(table: lake.Table) -> Any:
    """Remove the references to missing manifests of the newest snapshot."""
    return table.remove_missing_manifests(dry_run=False)


def _create_tag(
    table: lake.Table, *, tag: str, snapshot: int | None = None, time_retained: str | None = None
) -> Any:
    """Create a tag of ``snapshot``, by default of the newest, with lifetime ``time_retained``."""
    return table.tags.create(tag, snapshot=snapshot, retain=time_retained)


def _create_tag_from_timestamp(
    table: lake.Table, *, tag: str, timestamp: str | int, time_retained: str | None = None
) -> Any:
    """Create a tag of the first snapshot that was committed at ``timestamp`` or later."""
    return table.tags.create(tag, at_or_after=timestamp, retain=time_retained)


def _create_tag_from_watermark(
    table: lake.Table, *, tag: str, watermark: int, time_retained: str | None = None
) -> Any:
    """Create a tag of the first snapshot whose watermark is at least ``watermark``."""
    return table.tags.create(tag, watermark=watermark, retain=time_retained)


def _replace_tag(
    table: lake.Table, *, tag: str, snapshot: int | None = None, time_retained: str | None = None
) -> Any:
    """Move a tag to ``snapshot``, by default to the newest one. Its lifetime is then
    ``time_retained``, by default the option ``tag.default-time-retained``.
    """
    return table.tags.replace(tag, snapshot=snapshot, retain=time_retained)


def _rename_tag(table: lake.Table, *, tag: str, target_tag: str) -> Any:
    """Rename a tag."""
    return table.tags.rename(tag, target_tag)


def _delete_tag(table: lake.Table, *, tag: str) -> Any:
    """Delete one tag, or several separated by commas."""
    return table.tags.delete(*_names(tag))


def _trigger_tag_automatic_creation(table: lake.Table) -> Any:
    """Create the tags that the option ``tag.automatic-creation`` requires by now. Then delete the
    oldest automatic tags beyond ``tag.num-retained-max``; in mode ``batch`` the oldest of all tags.
    Tags at which a branch began and tags named ``rollback-to-as-latest-…`` are kept.
    """
    return table.tags.create_due()


def _rollback(
    table: lake.Table,
    *,
    version: str | int | None = None,
    snapshot: int | None = None,
    tag: str | None = None,
) -> Any:
    """Delete all snapshots after ``snapshot``, ``tag`` or ``version``: give one of them.
    ``version`` is the number of a snapshot or the name of a tag.
    """
    if version is not None:
        if snapshot is not None or tag is not None:
            raise lake.InvalidRequestError("give only one of 'version', 'snapshot' and 'tag'")
        snapshot, tag = (int(version), None) if str(version).isdecimal() else (None, str(version))
    return table.rollback(snapshot=snapshot, tag=tag, as_latest=False)


def _rollback_to(
    table: lake.Table,
    *,
    snapshot_id: int | None = None,
    tag: str | None = None,
    snapshot: int | None = None,
) -> Any:
    """Delete all snapshots after ``snapshot_id`` (also named ``snapshot``) or ``tag``."""
    if snapshot_id is not None and snapshot is not None:
        raise lake.InvalidRequestError("give only one of 'snapshot_id' and 'snapshot'")
    chosen = snapshot if snapshot_id is None else snapshot_id
    return table.rollback(snapshot=chosen, tag=tag, as_latest=False)


def _rollback_to_timestamp(table: lake.Table, *, timestamp: str | int) -> Any:
    """Delete the snapshots that were committed after ``timestamp``."""
    return table.rollback(as_of=timestamp, as_latest=False)


def _rollback_to_watermark(table: lake.Table, *, watermark: int) -> Any:
    """Delete all snapshots after the last snapshot whose watermark is at most ``watermark``."""
    return table.rollback(watermark=watermark, as_latest=False)


def _rollback_to_as_latest(
    table: lake.Table, *, snapshot_id: int | None = None, tag: str | None = None
) -> Any:
    """Publish the rows of ``snapshot_id`` or ``tag`` as a new snapshot; all snapshots are kept."""
    return table.rollback(snapshot=snapshot_id, tag=tag)


def _create_branch(table: lake.Table, *, branch: str, tag: str | None = None) -> Any:
    """Create a branch at a tag; without a tag, a branch without rows."""
    return table.branches.create(branch, tag=tag)


def _rename_branch(table: lake.Table, *, from_branch: str, to_branch: str) -> Any:
    """Rename a branch."""
    return table.branches.rename(from_branch, to_branch)


def _delete_branch(table: lake.Table, *, branch: str) -> Any:
    """Delete a branch."""
    return table.branches.delete(branch)


def _fast_forward(table: lake.Table, *, branch: str) -> Any:
    """Move main to the newest snapshot of a branch; refused if main has a commit that the branch
    lacks.
    """
    return table.branches.fast_forward(branch)


def _reset_consumer(
    table: lake.Table, *, consumerId: str, nextSnapshotId: int | None = None
) -> Any:
    """Create a consumer at ``nextSnapshotId`` or move it there; without a number, delete it."""
    if nextSnapshotId is None:
        return table.consumers.reset(consumerId)
    return table.consumers.set(consumerId, next_snapshot=nextSnapshotId)


def _clear_consumers(
    table: lake.Table, *, includingConsumers: str = ".*", excludingConsumers: str | None = None
) -> Any:
    """Delete the consumers whose whole name matches the regular expression ``includingConsumers``
    (default: all) but not ``excludingConsumers``.
    """
    return table.consumers.clear(including=includingConsumers or ".*", excluding=excludingConsumers)


def _mark_partition_done(table: lake.Table, *, partitions: str) -> Any:
    """Mark partitions as done, with the actions of the option ``partition.mark-done-action``."""
    return table.mark_partitions_done(_partitions(partitions))


def _drop_partition(table: lake.Table, *, partitions: str) -> Any:
    """Delete the rows of partitions."""
    return table.drop_partitions(_partitions(partitions))


def _repair(catalog: lake.Catalog, *, database_or_table: str | None = None) -> Any:
    """Finish interrupted changes of all tables, or of one database or table, so that the catalog
    and the files agree.
    """
    return catalog.repair(database_or_table)


def _repair_earliest_snapshot(table: lake.Table) -> Any:
    """Correct the files ``EARLIEST`` and ``LATEST``, which have the numbers of the oldest and the
    newest snapshot.
    """
    return table.repair()


_IN_TASKS: tuple[_Does, ...] = (_compact, _rescale, _remove_orphan_files)

PROCEDURES: Mapping[str, Procedure] = {
    name: Procedure(name, does, of_table=does is not _repair, in_tasks=does in _IN_TASKS)
    for does in (
        _compact,
        _compact_manifest,
        _rescale,
        _rewrite_file_index,
        _expire_snapshots,
        _expire_partitions,
        _expire_tags,
        _remove_orphan_files,
        _remove_unexisting_files,
        _remove_unexisting_manifests,
        _drop_partition,
        _create_tag,
        _create_tag_from_timestamp,
        _create_tag_from_watermark,
        _replace_tag,
        _rename_tag,
        _delete_tag,
        _trigger_tag_automatic_creation,
        _create_branch,
        _rename_branch,
        _delete_branch,
        _fast_forward,
        _rollback,
        _rollback_to,
        _rollback_to_timestamp,
        _rollback_to_watermark,
        _rollback_to_as_latest,
        _reset_consumer,
        _clear_consumers,
        _repair,
        _repair_earliest_snapshot,
        _mark_partition_done,
    )
    for name in [does.__name__.removeprefix("_")]
}
"""All procedures by name."""
