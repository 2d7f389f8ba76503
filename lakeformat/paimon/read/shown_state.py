"""The state a scan shows where the options of the table name one and the call names none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot, read_snapshot_if_present
from lakeformat.paimon.metadata.tag import read_tag_if_present
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.read.time_travel import find_snapshot, newest_at, newest_compacted, to_millis
from lakeformat.paimon.schema_changes.time_travel_rules import INCREMENTAL, NamedState, named_state

__all__ = ["ShownState", "find_shown_state"]

_WATERMARK = "watermark-"


@dataclass(frozen=True, slots=True)
class ShownState:
    """A snapshot, as far as it is shown."""

    snapshot: Snapshot | None
    decided_by: str | None = None
    """The option that names it, with its value; None if the call did, or it is the newest."""
    with_its_schema: bool = False
    """The rows have the columns of then, not those of now."""
    created_from_millis: int | None = None
    """Files written before are left out."""


def find_shown_state(handle: TableHandle) -> ShownState | None:
    """Return the state that the options of a table name; None for the newest, as usual."""
    named = named_state(handle.options)
    if named is None:
        return None
    if named.mode == INCREMENTAL:
        raise UnsupportedError(
            f"{handle.uri} sets {named}: other engines show changes in place of its rows, which a "
            "scan here does not. Read the changes with Table.changes or `lake changes`, name a "
            "snapshot in the call to read its rows, or remove the option"
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
            f"{error}. The table sets {named}: set it to what is there, remove it, or name a "
            "snapshot in the call"
        ) from None


def _files_from(handle: TableHandle, millis: int | None, decided_by: str) -> ShownState:
    head = latest_snapshot(handle.storage, handle.layout)
    return ShownState(head, decided_by, created_from_millis=millis)


def _first_at(handle: TableHandle, millis: int) -> Snapshot | None:
    """The oldest snapshot of a time or later, if an older one than the time is there, too."""
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
    raise NotFoundError(f"{handle.uri} has no tag {version!r}, and that is no number of a snapshot")


def _local_millis(named: NamedState) -> int:
    """Java takes the zone of the machine where a text has none, unlike a call here."""
    try:
        moment = datetime.fromisoformat(named.text.strip())
    except ValueError:
        raise InvalidRequestError(
            f"option {named} is no time such as '2024-01-31 10:00:00'; set it to one, or remove it"
        ) from None
    return to_millis(moment.astimezone())
