# SPDX-License-Identifier: Apache-2.0
"""Finds the snapshot that the arguments of a call choose: by id, position, tag or time."""

from __future__ import annotations

from typing import TypedDict

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.branch_history import BranchHistory, BranchSnapshot
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.tables.moment import Moment, moment_text, to_millis
from lakeformat.tables.position import MAIN_BRANCH, AnyPosition, Position

__all__ = ["Choice", "choose", "newest_at", "snapshot_id_of", "snapshot_text"]


class Choice(TypedDict):
    """The arguments of ``find_state`` that choose a snapshot; at most one of them is not None."""

    snapshot: int | None
    tag: str | None
    branch: str | None
    as_of: Moment | None


def choose(
    loaded: LoadedMetadata,
    history: BranchHistory,
    *,
    snapshot: AnyPosition | None = None,
    tag: str | None = None,
    as_of: Moment | None = None,
) -> Choice:
    """Return the arguments for ``find_state``.

    By default, they choose the newest snapshot of the branch of ``history``. Raise
    ``NotFoundError`` if a branch other than ``main`` had no snapshot at ``as_of``. For
    ``snapshot``, raise the errors of ``snapshot_id_of``.
    """
    if snapshot is None and tag is None and as_of is None:
        has_snapshots = bool(history.snapshots)
        branch = history.branch if has_snapshots else None
        return Choice(snapshot=None, tag=None, branch=branch, as_of=None)
    number = None if snapshot is None else snapshot_id_of(loaded, history, snapshot)
    if as_of is not None and number is None and tag is None and history.branch != MAIN_BRANCH:
        return Choice(
            snapshot=_existing_at(loaded, history, as_of), tag=None, branch=None, as_of=None
        )
    return Choice(snapshot=number, tag=tag, branch=None, as_of=as_of)


def newest_at(metadata: TableMetadata, history: BranchHistory, millis: int) -> int | None:
    """Return the id of the newest snapshot that the branch of ``history`` had at a time.

    Return None if the branch had no snapshot then, or if the metadata do not reach back to that
    time. For main, the snapshot log has the times at which snapshots became the newest. After a
    fast-forward or a rollback, these times are later than the commits, and the result may be a
    snapshot that is no longer in ``history``. For other branches, and for main without a log, the
    commit times decide.
    """
    if history.branch == MAIN_BRANCH and metadata.snapshot_log:
        return metadata.current_id_at(millis)
    for each in reversed(history.snapshots):
        if each.timestamp_ms <= millis:
            return each.snapshot_id
    return None


def snapshot_id_of(loaded: LoadedMetadata, history: BranchHistory, chosen: AnyPosition) -> int:
    """Return the id of the snapshot that is chosen by id, sequence number or position.

    An int that is neither the id nor the sequence number of a snapshot is returned unchanged. Raise
    ``InvalidRequestError`` for a value of another type, or for an int that is the id of one
    snapshot and the sequence number of another. Raise ``NotFoundError`` if the branch has no
    snapshot up to the position, or if the position's snapshot is not in the history of the branch,
    for example after a rollback.
    """
    if not isinstance(chosen, Position):
        if isinstance(chosen, bool) or not isinstance(chosen, int):
            raise InvalidRequestError(
                "snapshot must be a snapshot id or a position from table.position(…), got "
                f"{chosen!r}"
            )
        if loaded.metadata.snapshot(chosen) is not None:
            _require_one_meaning(loaded, history, chosen)
            return chosen
    number = history.number(chosen)
    upto = [each for each in history.snapshots if each.snapshot.sequence_number <= number]
    if isinstance(chosen, int):
        exact = [each for each in upto if each.snapshot.sequence_number == number > 0]
        return exact[-1].snapshot_id if exact else chosen
    if not upto:
        raise NotFoundError(
            f"{loaded.places.uri} has no snapshot up to position {chosen}: it may have expired; "
            "snapshots() lists those that are left"
        )
    if number and chosen.identity is not None:
        return _identified_id(loaded, upto, chosen)
    return upto[-1].snapshot_id


def snapshot_text(snapshot: Snapshot) -> str:
    """Return ``snapshot <id> (sequence number <n>, committed <time>)``, for messages."""
    number = snapshot.sequence_number
    numbered = f"sequence number {number}, " if number else ""
    at = moment_text(snapshot.timestamp_ms)
    return f"snapshot {snapshot.snapshot_id} ({numbered}committed {at})"


def _identified_id(loaded: LoadedMetadata, upto: list[BranchSnapshot], chosen: Position) -> int:
    for each in upto:
        if each.identity == chosen.identity:
            return each.snapshot_id
    raise NotFoundError(
        f"position {chosen} of {loaded.places.uri} belongs to a history that a rollback removed, "
        "or to an earlier table of this name. Choose another snapshot: snapshots() lists those "
        "that are left. To follow the changes of the table, read all rows with scan(), and then "
        "the changes after the snapshot of that scan"
    )


def _require_one_meaning(loaded: LoadedMetadata, history: BranchHistory, chosen: int) -> None:
    """Raise ``InvalidRequestError`` if the snapshot id ``chosen`` is also the sequence number of
    another snapshot.
    """
    for each in history.snapshots:
        if each.snapshot.sequence_number == chosen > 0 and each.snapshot_id != chosen:
            other = loaded.metadata.snapshot(chosen)
            assert other is not None
            raise InvalidRequestError(
                f"{chosen} names two snapshots of {loaded.places.uri}: {snapshot_text(other)} by "
                f"its id, and {snapshot_text(each.snapshot)} by its sequence number. To "
                f"choose the second one, pass table.position('{each.position}')"
            )


def _existing_at(loaded: LoadedMetadata, history: BranchHistory, as_of: Moment) -> int:
    """Return the id of the newest snapshot that the branch had at a time; raise ``NotFoundError``
    if there was none.
    """
    millis = to_millis(as_of)
    found = newest_at(loaded.metadata, history, millis)
    if found is not None:
        return found
    oldest = history.snapshots[0].timestamp_ms if history.snapshots else None
    since = (
        "it has no snapshot"
        if oldest is None
        else f"its history begins at {moment_text(oldest)}; choose a later time"
    )
    raise NotFoundError(
        f"branch {history.branch!r} of {loaded.places.uri} had no snapshot at "
        f"{moment_text(millis)}: {since}"
    )
