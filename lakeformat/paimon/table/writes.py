# SPDX-License-Identifier: Apache-2.0
"""The work of ``Table.write``, ``commit``, ``new_writer`` and ``drop_partitions``.

If another commit may have moved keys to other buckets or partitions meanwhile, ``Table.write``
writes its rows again, unless the data can be read only once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakeformat.errors import (
    BucketsChangedError,
    CommitOutcomeUnknownError,
    InvalidRequestError,
    LakeError,
    UnsupportedError,
)
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.commit.earlier_result import earlier_tries, find_replay
from lakeformat.paimon.commit.foreign_messages import are_there, check_foreign_messages
from lakeformat.paimon.commit.identity import EarlierCommits
from lakeformat.paimon.commit.overwrite import DYNAMIC, Dynamic
from lakeformat.paimon.commit.transaction import wait_to_retry
from lakeformat.paimon.commit.written_files import written_paths
from lakeformat.paimon.handle import TableHandle, crosses_partitions
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partition_filter import PartitionFilter, some_partitions
from lakeformat.paimon.snapshot_positions import snapshot_number
from lakeformat.paimon.write.table_writer import TableWriter
from lakeformat.tables.arguments import PartitionSpec
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.position import AnyPosition, Position
from lakeformat.types.type_rules import is_whole_number

if TYPE_CHECKING:
    from lakeformat.paimon.write.as_of import WrittenAsOf
    from lakeformat.paimon.write.key_places import FoundKeys

__all__ = [
    "RowsWrite",
    "commit_options",
    "commit_prepared",
    "delete_partitions",
    "new_writer",
    "replacement",
]

Replaced = PartitionFilter | Dynamic | None


def commit_options(
    handle: TableHandle,
    commit: CommitId | None,
    watermark: int | None,
    properties: Mapping[str, str] | None,
    read_snapshot: AnyPosition | str | None,
) -> CommitOptions:
    """Return the arguments of a write or a commit as CommitOptions.

    Raise InvalidRequestError for a position of another table or branch.
    """
    identity = None
    if isinstance(read_snapshot, Position | str):
        read = Position.parse(read_snapshot)
        read_snapshot = snapshot_number(handle, "'read_snapshot' must be a snapshot number", read)
        identity = read.identity
    return CommitOptions(
        commit=commit,
        watermark=watermark,
        properties={} if properties is None else properties,
        read_snapshot=read_snapshot,
        read_identity=identity,
    )


def replacement(handle: TableHandle, overwrite: object) -> Replaced:
    """Return the partitions that the argument ``overwrite`` replaces; None for an append.

    DYNAMIC stands for the partitions that get rows. Raise InvalidRequestError for an invalid
    argument, and for ``"partitions"`` if the table has no partition columns.
    """
    if overwrite is None:
        return None
    if overwrite == "partitions" and not handle.schema.partition_keys:
        raise InvalidRequestError(
            f"{handle.uri} has no partitions, so overwrite='partitions' would replace all its "
            "rows: write overwrite='table' if you want that"
        )
    if overwrite in ("dynamic", "partitions"):
        return DYNAMIC
    if overwrite == "table":
        overwrite = {}
    if not isinstance(overwrite, Mapping):
        raise InvalidRequestError(
            "overwrite must be 'table' for all rows, 'partitions' for the partitions that get "
            f"rows, or {{'dt': '2024-01-01'}} for some partitions, got {overwrite!r}"
        )
    return some_partitions(handle.schema, [overwrite])


def commit_prepared(
    handle: TableHandle,
    messages: Sequence[CommitMessage],
    options: CommitOptions,
    replaced: Replaced,
    *,
    is_in_order: bool = False,
) -> CommitReport:
    """Publish the files of messages, and return the report of the commit.

    If ``options.commit`` was published before, only return the report of that commit. With
    ``is_in_order``, the messages do not replace rows that other commits changed after
    ``options.read_snapshot``.
    """
    earlier = None
    if options.commit is not None:
        earlier = earlier_tries(handle, options.commit, overwrite=replaced, messages=messages)
        known = messages
        if is_in_order and find_replay(handle, earlier, overwrite=replaced):
            # The earlier attempt deletes given files whose rows it writes again.
            known = [each for each in messages if _has_files(handle, each)]
        if done := find_replay(handle, earlier, overwrite=replaced, messages=known):
            return done
    check_foreign_messages(handle, messages)
    if is_in_order:
        from lakeformat.paimon.transaction_order.write import BatchInOrder

        return BatchInOrder(
            handle, None, None, options, replaced, earlier, can_be_read_again=False, given=messages
        ).run()
    return commit_messages(
        handle, messages, options, overwrite=replaced, earlier=earlier, from_elsewhere=True
    )


def _has_files(handle: TableHandle, message: CommitMessage) -> bool:
    return any(are_there([*written_paths(handle, [message])]))


def delete_partitions(
    handle: TableHandle,
    partitions: Collection[PartitionSpec],
    commit: CommitId | None,
    read_snapshot: AnyPosition | str | None,
) -> CommitReport:
    """Delete the rows of ``partitions``; the spec ``{}`` means all partitions.

    On the main branch, also remove the marks of those partitions that were marked as done.
    """
    from lakeformat.paimon.partitions.mark_done import remove_marks_of_emptied

    options = replace(
        commit_options(handle, commit, None, None, read_snapshot), operation="TRUNCATE"
    )
    replaced = some_partitions(handle.schema, partitions)
    report = commit_messages(handle, [], options, overwrite=replaced)
    remove_marks_of_emptied(handle, report)
    return report


def new_writer(
    handle: TableHandle,
    replaced: Replaced,
    *,
    is_committed_here: bool,
    as_of: WrittenAsOf | None = None,
) -> TableWriter:
    """Return a writer, whose rows are added to the table or replace the partitions ``replaced``.

    ``is_committed_here``: the caller commits the messages itself, at once. ``as_of``: the snapshot
    from which the rows were computed, and the keys that other commits have changed since. Rows
    with these keys are not written.
    """
    within = replaced if isinstance(replaced, PartitionFilter) else None
    if replaced is not None and crosses_partitions(handle):
        _require_whole(handle, within)
    return TableWriter(
        handle,
        replaces=replaced is not None,
        within=within,
        is_committed_here=is_committed_here,
        find_keys=_find_keys,
        as_of=as_of,
    )


@dataclass(frozen=True, slots=True)
class RowsWrite:
    """One call of ``Table.write``."""

    handle: TableHandle
    data: Any
    kinds: Any
    options: CommitOptions
    replaced: Replaced
    is_in_order: bool = False
    """True if the write keeps the rows that other commits changed after
    ``options.read_snapshot``.
    """

    def run(self) -> CommitReport:
        """Write and publish the rows, and return the report of the commit.

        If ``options.commit`` was published before, only return the report of that commit. After a
        ``LakeError`` no new file remains, except after ``CommitOutcomeUnknownError``: then a
        snapshot may use the files.
        """
        handle, commit = self.handle, self.options.commit
        replaced = self.replaced
        earlier = None if commit is None else earlier_tries(handle, commit, overwrite=replaced)
        if earlier is not None:
            # With a primary key, merging changes the number of rows.
            rows = None if handle.schema.primary_keys else _known_rows(self.data)
            if done := find_replay(handle, earlier, overwrite=replaced, rows=rows):
                return done
        if self.is_in_order:
            return self._in_order(earlier)
        for failures in range(1, handle.options.commit_max_retries + 1):
            try:
                return self._once(earlier)
            except BucketsChangedError:
                if not _can_be_read_again(self.data):
                    raise
            wait_to_retry(handle, failures)
        return self._once(earlier)

    def _in_order(self, earlier: EarlierCommits | None) -> CommitReport:
        from lakeformat.paimon.transaction_order.write import BatchInOrder

        return BatchInOrder(
            self.handle,
            self.data,
            self.kinds,
            self.options,
            self.replaced,
            earlier,
            can_be_read_again=_can_be_read_again(self.data),
        ).run()

    def _once(self, earlier: EarlierCommits | None) -> CommitReport:
        handle, replaced = self.handle, self.replaced
        with new_writer(handle, replaced, is_committed_here=True) as writer:
            writer.write(self.data, self.kinds)
            messages = writer.prepare()
        try:
            report = commit_messages(
                handle, messages, self.options, overwrite=replaced, earlier=earlier
            )
        except LakeError as error:
            # Does the same as ``kept_if_published``, but is faster for each append.
            if not isinstance(error, CommitOutcomeUnknownError):
                writer.abort()
            raise
        if report.replayed:  # another attempt with this identity was faster: remove these files
            writer.abort()
        return report


def _find_keys(handle: TableHandle, snapshot: Snapshot | None, keys: pa.Array) -> FoundKeys:
    from lakeformat.paimon.existing_keys import find_keys  # this call reads the table

    return find_keys(handle, snapshot, keys)


def _require_whole(handle: TableHandle, within: PartitionFilter | None) -> None:
    """Raise UnsupportedError if an overwrite of ``within`` could leave a key in two partitions."""
    if within is None or not within.is_everything:
        raise UnsupportedError(
            f"keys of {handle.uri} may be in any partition, so an overwrite of some partitions "
            "could leave a key in two partitions. Write the rows without 'overwrite' to move their "
            "keys, or overwrite the whole table"
        )


def _known_rows(data: Any) -> int | None:
    """Return the number of rows of the data; None if the data must be read to count them."""
    rows = getattr(data, "num_rows", None)
    if rows is None and isinstance(shape := getattr(data, "shape", None), tuple) and shape:
        rows = shape[0]
    return rows if is_whole_number(rows) else None


def _can_be_read_again(data: Any) -> bool:
    """Return True for a collection or an Arrow stream that can be read twice; False for an iterator
    or a ``RecordBatchReader``, which the first read consumes.
    """
    if isinstance(data, pa.RecordBatchReader):
        return False
    return hasattr(data, "__arrow_c_stream__") or isinstance(data, Collection)
