# SPDX-License-Identifier: Apache-2.0
"""Finds the snapshot that the table options choose, for scans that do not name a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot, read_snapshot_if_present
from lakeformat.paimon.metadata.tag import read_tag_if_present, tag_names
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.read.time_travel import find_snapshot, newest_at, newest_compacted
from lakeformat.paimon.schema_changes.time_travel_rules import INCREMENTAL, NamedState, named_state
from lakeformat.tables.moment import to_millis
from lakeformat.types.closest import closest
from lakeformat.types.sentence import sentence

__all__ = ["ShownState", "find_shown_state"]

_WATERMARK = "watermark-"


@dataclass(frozen=True, slots=True)
class ShownState:
    """The snapshot that a scan reads, and the table option that chose the snapshot."""

    snapshot: Snapshot | None
    decided_by: str | None = None
    """The table option that chose the snapshot, with its value; None if no option did."""
    with_its_schema: bool = False
    """True to use the columns of the chosen snapshot instead of the current columns."""
    created_from_millis: int | None = None
    """Files written before this time are skipped."""


def find_shown_state(handle: TableHandle) -> ShownState | None:
    """Return the snapshot that the table's options choose; None if they choose none.

    Raise UnsupportedError if an option makes scans return changes instead of rows. Raise
    NotFoundError if the snapshot of an option does not exist. Raise InvalidRequestError if two
    options contradict each other, or if a value is not a time.
    """
    named = named_state(handle.options)
    if named is None:
        return None
    if named.mode == INCREMENTAL:
        raise UnsupportedError(
            f"{handle.uri} sets {named}, which makes a scan return changes instead of rows; this "
            "version does not support that. Read changes with table.changes(), pass a snapshot to "
            "read its rows, or remove the option"
        )
    options, decided_by = handle.options, str(named)
    match named.mode:
        case "compacted-full":
            head = latest_snapshot(handle.storage, handle.layout)
            return ShownState(newest_compacted(handle) or head, decided_by)
        case "from-file-creation-time":
            return _files_from(handle, options.scan_file_creation_time_millis, decided_by)
        case "from-creation-timestamp":
            millis = options.scan_creation_time_millis
            assert millis is not None
            if (found := _first_at(handle, millis)) is not None:
                return ShownState(found, decided_by)
            return _files_from(handle, millis, decided_by)
    try:
        return ShownState(_named_snapshot(handle, named), decided_by, with_its_schema=True)
    except NotFoundError as error:
        raise NotFoundError(
            f"{sentence(error)} The table option {named} chose this snapshot: correct or remove "
            "the option, or pass a snapshot"
        ) from None


def _files_from(handle: TableHandle, millis: int | None, decided_by: str) -> ShownState:
    head = latest_snapshot(handle.storage, handle.layout)
    return ShownState(head, decided_by, created_from_millis=millis)


def _first_at(handle: TableHandle, millis: int) -> Snapshot | None:
    """Return the oldest snapshot committed at or after a time.

    Return None if there is none. Return None, too, if no snapshot from before that time exists:
    the first snapshot after the time may then have expired.
    """
    before = newest_at(handle, millis - 1)
    if before is None:
        return None
    return read_snapshot_if_present(handle.storage, handle.layout, before.id + 1)


def _named_snapshot(handle: TableHandle, named: NamedState) -> Snapshot | None:
    options = handle.options
    if named.option is TableOptions.scan_version:
        return _of_version(handle, named.text)
    return find_snapshot(
        handle,
        snapshot=options.scan_snapshot_id,
        tag=options.scan_tag_name or None,
        as_of=_local_millis(named) if options.scan_timestamp else options.scan_timestamp_millis,
        watermark=options.scan_watermark,
    )


def _of_version(handle: TableHandle, version: str) -> Snapshot | None:
    tag = read_tag_if_present(handle.storage, handle.layout, version)
    if tag is not None:
        return tag.snapshot
    watermark = version.removeprefix(_WATERMARK)
    if watermark != version and watermark.isdecimal():
        return find_snapshot(handle, watermark=int(watermark))
    if version.isdecimal():
        return find_snapshot(handle, snapshot=int(version))
    near = closest(version, tag_names(handle.storage, handle.layout))
    raise NotFoundError(
        f"{handle.uri} has no tag {version!r}, and {version!r} is not a snapshot number{near}"
    )


def _local_millis(named: NamedState) -> int:
    """Return epoch milliseconds of the option's value, which is local time, as in Paimon.

    Raise InvalidRequestError if the value is not a time.
    """
    try:
        moment = datetime.fromisoformat(named.text.strip())
    except ValueError:
        raise InvalidRequestError(
            f"option {named} is not a time such as '2024-01-31 10:00:00'; correct or remove it"
        ) from None
    return to_millis(moment.astimezone())
