# SPDX-License-Identifier: Apache-2.0
"""Checks that sequence numbers show which staged row of a key is the newest."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.conflict_text import named, place
from lakeformat.paimon.commit.deltas import delta_of, newest_first
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import CommitKind
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.tables.staged.files import StagedResult

__all__ = ["require_order"]

_ADVICE = "discard the staged result and write its rows again, one writer after the other"


def require_order(handle: TableHandle, results: Sequence[StagedResult[CommitMessage]]) -> None:
    """Raise InvalidRequestError if rows of one bucket may have got the same sequence numbers twice.

    That happens if two results, or a result and a later commit, wrote to the same bucket. A table
    with ``sequence.field`` is not checked, because that column decides. A table without buckets
    needs no order.
    """
    if is_unaware(handle) or handle.options.sequence_field:
        return
    owners: dict[tuple[bytes, int], str] = {}
    for result in results:
        for where in {(each.partition, each.bucket) for each in result.messages}:
            if owners.setdefault(where, result.name) != result.name:
                raise InvalidRequestError(
                    f"two staged results have rows for bucket {where[1]} of "
                    f"{place(handle, where[0])} ({handle.uri}) with the same sequence numbers, so "
                    f"it is unknown which rows are newer. Nothing was published; {_ADVICE}"
                )
    _refuse_rivals(handle, results, owners.keys())


def _refuse_rivals(
    handle: TableHandle,
    results: Sequence[StagedResult[CommitMessage]],
    places: Collection[tuple[bytes, int]],
) -> None:
    head = latest_snapshot(handle.storage, handle.layout)
    bases = [each.base_snapshot for result in results for each in result.messages]
    if head is None or not bases or None in bases:
        return
    oldest = min(base for base in bases if base is not None)
    for snapshot in newest_first(handle, head, oldest):
        if snapshot is None:
            raise InvalidRequestError(
                f"snapshots of {handle.uri} have expired since these results were staged on "
                f"snapshot {oldest}, so it is unknown which rows are newer. "
                f"Nothing was published; {_ADVICE}"
            )
        if snapshot.commit_kind is CommitKind.COMPACT:
            continue
        for entry in delta_of(handle, snapshot).entries():
            if (entry.partition, entry.bucket) in places:
                raise InvalidRequestError(
                    f"{named(snapshot)} has written to bucket {entry.bucket} of "
                    f"{place(handle, entry.partition)} ({handle.uri}) since these results were "
                    f"staged on snapshot {oldest}, with the same sequence numbers, so it is "
                    f"unknown which rows are newer. Nothing was published; {_ADVICE}"
                )
