# SPDX-License-Identifier: Apache-2.0
"""Checks that sequence numbers show which staged row of a key is the newest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.conflict_text import named, place
from lakeformat.paimon.commit.deltas import delta_of, newest_first
from lakeformat.paimon.commit.rolled_back import rolled_back_base
from lakeformat.paimon.handle import TableHandle, crosses_partitions, is_unaware
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.index_manifest import HASH
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.tables.staged.files import StagedResult

__all__ = ["require_order"]

_Bucket = tuple[bytes, int]
"""A partition as a binary row, and a bucket of it."""


def require_order(
    handle: TableHandle,
    results: Sequence[StagedResult[CommitMessage]],
    address_of: Callable[[str], str],
) -> None:
    """Raise InvalidRequestError if it is unknown which rows of a bucket are newer.

    Sequence numbers show which rows are newer. Two results, or a result and a later commit, may use
    the same numbers in a bucket. So the error is raised if both wrote to the same bucket. The error
    is also raised if later commits cannot be checked: some of their snapshots have expired, or a
    rollback deleted the snapshot on which a result was staged.

    With ``sequence.field``, columns show which rows are newer. Then the error is raised only if two
    results add new keys to the same dynamic bucket. A table without buckets needs no order.

    ``address_of`` returns the address of a result by its name.
    """
    if is_unaware(handle):
        return
    if handle.options.sequence_field:
        _owners(
            handle,
            results,
            address_of,
            _buckets_with_new_index,
            "new keys of the dynamic bucket",
            "Each has an index of the keys of the bucket, and the table can keep only one.",
        )
        return
    owners = _owners(
        handle,
        results,
        address_of,
        _buckets_with_files,
        "rows for bucket",
        "Their sequence numbers may be the same, so it is unknown which rows are newer.",
    )
    _refuse_rivals(handle, results, owners)


def _owners(
    handle: TableHandle,
    results: Sequence[StagedResult[CommitMessage]],
    address_of: Callable[[str], str],
    buckets_of: Callable[[CommitMessage], Iterable[_Bucket]],
    content: str,
    reason: str,
) -> Mapping[_Bucket, str]:
    """Return each bucket that ``buckets_of`` finds in a result, with the address of the result.

    Raise InvalidRequestError if two results have the same bucket. In the error, ``content`` stands
    before the number of the bucket, such as "rows for bucket". ``reason`` explains why only one of
    the results may be published.
    """
    owners: dict[_Bucket, str] = {}
    for result in results:
        mine = address_of(result.name)
        for where in {bucket for message in result.messages for bucket in buckets_of(message)}:
            if (other := owners.setdefault(where, mine)) != mine:
                raise InvalidRequestError(
                    f"the staged results {other} and {mine} both have {content} {where[1]} of "
                    f"{place(handle, where[0])} ({handle.uri}). {reason} Nothing was published; "
                    f"publish the first one, then discard the second one: {_discard([mine])}"
                )
    return owners


def _buckets_with_files(message: CommitMessage) -> Iterable[_Bucket]:
    return [(message.partition, message.bucket)]


def _buckets_with_new_index(message: CommitMessage) -> Iterable[_Bucket]:
    indexes = message.new_index_files
    return [(each.partition, each.bucket) for each in indexes if each.index_type == HASH]


def _refuse_rivals(
    handle: TableHandle,
    results: Sequence[StagedResult[CommitMessage]],
    owners: Mapping[_Bucket, str],
) -> None:
    head = latest_snapshot(handle.storage, handle.layout)
    bases = [each.base_snapshot for result in results for each in result.messages]
    if head is None or not bases or None in bases:
        return
    _refuse_rolled_back(handle, results, head, owners)
    oldest = min(base for base in bases if base is not None)
    for snapshot in newest_first(handle, head, oldest):
        if snapshot is None:
            raise InvalidRequestError(
                f"snapshots of {handle.uri} have expired since results were staged on "
                f"snapshot {oldest}, so it is unknown which rows are newer. Nothing was published; "
                f"discard the results: {_discard(dict.fromkeys(owners.values()))}"
            )
        if snapshot.commit_kind is CommitKind.COMPACT:
            continue
        for entry in delta_of(handle, snapshot).entries():
            if (mine := owners.get((entry.partition, entry.bucket))) is not None:
                raise InvalidRequestError(
                    f"{named(snapshot)} has written to bucket {entry.bucket} of "
                    f"{place(handle, entry.partition)} ({handle.uri}) since the result {mine} was "
                    "staged. Both may have the same sequence numbers, so it is unknown which rows "
                    f"are newer. Nothing was published; discard the result: {_discard([mine])}"
                )


def _refuse_rolled_back(
    handle: TableHandle,
    results: Sequence[StagedResult[CommitMessage]],
    head: Snapshot,
    owners: Mapping[_Bucket, str],
) -> None:
    if crosses_partitions(handle):
        return  # the commit refuses these results itself: a key could end up in two partitions
    messages = [message for result in results for message in result.messages]
    if (cut := rolled_back_base(handle, head, messages)) is not None:
        raise InvalidRequestError(
            f"a rollback of {handle.uri} deleted snapshot {cut}, on which results were staged. "
            "Later rows may have the same sequence numbers, so it is unknown which rows are "
            "newer. Nothing was published; discard the results: "
            f"{_discard(dict.fromkeys(owners.values()))}"
        )


def _discard(addresses: Iterable[str]) -> str:
    return f"table.staged.discard({[*addresses]}, dry_run=False), then write the rows again"
