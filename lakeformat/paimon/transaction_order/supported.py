# SPDX-License-Identifier: Apache-2.0
"""Checks that a table can be written with ``conflict="transaction-order"``."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.handle import TableHandle, crosses_partitions
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.tables.arguments import CONFLICTS, TRANSACTION_ORDER
from lakeformat.types.closest import closest

__all__ = ["is_transaction_order", "require_transaction_order"]

_OPTIMISTIC = "write with conflict='optimistic'"


def is_transaction_order(
    handle: TableHandle,
    conflict: object,
    read_snapshot: object,
    *,
    otherwise: str = _OPTIMISTIC,
) -> bool:
    """Return True if a write keeps the rows that were changed since ``read_snapshot``.

    With ``conflict=None``, the table option ``write.conflict`` decides about a write with
    ``read_snapshot``. Raise InvalidRequestError for an unknown ``conflict``, and if a write in
    transaction order has no ``read_snapshot``. Raise UnsupportedError if the table does not support
    this order. ``otherwise`` is the advice in this error, unless the reason has its own advice.
    """
    if conflict is None and read_snapshot is not None:
        conflict = handle.options.write_conflict
    if conflict not in (None, *CONFLICTS):
        raise InvalidRequestError(
            f"conflict must be 'optimistic' or 'transaction-order', got {conflict!r}"
            f"{closest(str(conflict), CONFLICTS)}"
        )
    if conflict != TRANSACTION_ORDER:
        return False
    require_transaction_order(handle, otherwise)
    if read_snapshot is None:
        raise InvalidRequestError(
            f"conflict='transaction-order' on {handle.uri} needs read_snapshot, the snapshot from "
            "which the rows were computed: call table.position() before you read the table, and "
            "pass the result"
        )
    return True


def require_transaction_order(handle: TableHandle, otherwise: str = _OPTIMISTIC) -> None:
    """Raise UnsupportedError for a table that cannot be written in transaction order.

    A table is supported if the newest row of a key replaces the older rows, a key keeps its
    partition, and writers assign the buckets. ``otherwise`` is the advice in the error, unless the
    reason has its own advice.
    """
    options = handle.options
    engine = options.merge_engine
    if not handle.schema.primary_keys:
        reason = (
            "the table has no primary key, so a row of the batch and a newer row cannot be "
            f"recognised as the same: {otherwise}"
        )
    elif engine == "first-row":
        reason = (
            "merge engine 'first-row' keeps the first row of a key, and readers may have seen the "
            "row of a later transaction already: leave out read_snapshot and conflict, then rows "
            "are added only where the table lacks their key"
        )
    elif engine != "deduplicate":
        reason = (
            f"merge engine {engine!r} combines the rows of a key, so a row cannot be placed before "
            f"newer ones: {otherwise}, or with 'partial-update' let sequence groups decide which "
            "values are newer, and leave out read_snapshot and conflict"
        )
    elif options.sequence_field:
        reason = (
            f"'sequence.field' = {','.join(options.sequence_field)!r} decides which row of a key "
            "is newer, regardless of the order of the commits: leave out read_snapshot and conflict"
        )
    elif crosses_partitions(handle):
        reason = (
            f"its primary key lacks a partition column, so keys move between partitions: "
            f"{otherwise}"
        )
    elif options.bucket == POSTPONE_BUCKET:
        reason = (
            "rows of a table with 'bucket' = '-2' get their order when a compaction assigns "
            f"buckets: {otherwise}"
        )
    else:
        return
    raise UnsupportedError(
        f"{handle.uri} cannot be written with conflict='transaction-order': {reason}. Nothing was "
        "written"
    )
