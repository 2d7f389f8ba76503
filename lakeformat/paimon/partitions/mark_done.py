# SPDX-License-Identifier: Apache-2.0
"""Marks partitions as done, for programs that wait until all rows of a partition are written.

Readers of the table ignore the mark. Marking a partition again updates the file ``_SUCCESS``, which
has the times of the first and of the last call. The marks are deleted with the rows of a partition.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from lakeformat.errors import InvalidRequestError, LakeError, NotFoundError, UnsupportedError
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot, read_snapshot_if_present
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.kinds import Kind
from lakeformat.paimon.partition import partition_fields, partition_path
from lakeformat.paimon.partition_filter import some_partitions
from lakeformat.paimon.partitions.live import chosen, live_partitions
from lakeformat.paimon.partitions.partition_reports import DonePartition, MarkDoneReport
from lakeformat.paimon.partitions.touched import changed_partitions
from lakeformat.storage.base import TooLargeError
from lakeformat.storage.empty_directory import remove_empty_directory
from lakeformat.tables.arguments import PartitionSpec
from lakeformat.tables.json_file import NO_JSON
from lakeformat.types.type_rules import is_list
from lakeformat.types.values import values_from_arrow

__all__ = ["mark_partitions_done", "remove_marks_of_emptied"]

_log = logging.getLogger(__name__)
SUCCESS_FILE = "_SUCCESS"
_DONE_SUFFIX = ".done"
_SUCCESS_ACTION, _DIRECTORY_ACTION = "success-file", "done-partition"
_NEEDS = {
    "mark-event": "a metastore that accepts events, which this library does not support",
    "http-report": "an HTTP service, which this library does not call",
    "custom": "a Java class, which this library cannot run",
}


def mark_partitions_done(
    handle: TableHandle,
    partitions: Sequence[PartitionSpec],
    *,
    actions: Sequence[str] | None = None,
    allow_empty: bool = False,
    dry_run: bool = False,
) -> MarkDoneReport:
    """Mark partitions as done; a dry run only lists the marks that it would make.

    Raise InvalidRequestError unless each partition is given by the values of all partition columns.
    Raise NotFoundError for a partition without rows, unless ``allow_empty`` is True. ``actions``
    replaces the option ``partition.mark-done-action``; raise UnsupportedError for an action that
    only other engines carry out. Raise InvalidRequestError on a branch, as all marks belong to the
    main branch; a dry run on a branch raises no error, and reads the marks of main.
    """
    asked = _checked_actions(handle, actions)
    if not dry_run and handle.layout.branch != MAIN_BRANCH:
        raise InvalidRequestError(
            "partitions can only be marked as done from main, but this is branch "
            f"{handle.layout.branch!r} of {handle.uri}: programs that wait for a mark read the "
            "rows of main. Nothing was marked. Get the rows into main, then open the table without "
            "a branch and mark the partitions"
        )
    found = _rows(handle, _checked(handle, partitions), allow_empty=allow_empty)

    def mark(path: str) -> DonePartition:
        made = _creation_time(handle, path)
        if not dry_run:
            _mark(handle, path, asked, made)
        return DonePartition(
            partition=path,
            marks=tuple(handle.storage.uri(each) for each in _marks(handle, path, asked)),
            rows=found[path],
            repeated=made is not None,
        )

    done = in_parallel(handle, mark, found)
    verb = "partitions that would be marked" if dry_run else "partitions marked"
    report = MarkDoneReport(
        table=handle.uri,
        dry_run=dry_run,
        actions=asked,
        partitions=tuple(done),
        reason=f"{verb} as done by {', '.join(asked)}: {len(done)}",
    )
    if not dry_run:
        _log.info("%s: %s", handle.name, report.reason)
    return report


def _remove_marks(handle: TableHandle, path: str) -> None:
    """Delete the marks of a partition whose rows were deleted; log a warning if this fails."""
    storage = handle.storage
    file, directory = _success_file(handle, path), _done_directory(handle, path)
    try:
        if storage.exists(file):
            storage.delete(file)
        if storage.directory_exists(directory):
            remove_empty_directory(storage, directory)
    except LakeError as error:
        from lakeformat.types.sentence import sentence  # only for a message

        _log.warning(
            "partition %s of %s was deleted, but its marks were not: %s Delete the file %s and the "
            "directory %s if they exist",
            *(path, handle.uri, sentence(error), storage.uri(file), storage.uri(directory)),
        )


def remove_marks_of_emptied(handle: TableHandle, report: CommitReport) -> None:
    """Delete the marks of the partitions whose rows a commit has deleted.

    Keep the marks of partitions that got new rows meanwhile. After a commit to a branch keep all
    marks, as they belong to the main branch.
    """
    if not handle.schema.partition_keys or handle.layout.branch != MAIN_BRANCH:
        return
    try:
        paths = _emptied(handle, report)
    except LakeError as error:
        from lakeformat.types.sentence import sentence  # only for a message

        _log.warning(
            "%s: partitions were deleted, but their marks may still exist: %s Delete the files "
            "_SUCCESS in their directories, and the empty directories that end in .done",
            *(handle.uri, sentence(error)),
        )
        return
    in_parallel(handle, partial(_remove_marks, handle), paths)


def _emptied(handle: TableHandle, report: CommitReport) -> list[str]:
    number = report.snapshot_id
    snapshot = number and read_snapshot_if_present(handle.storage, handle.layout, number)
    if not snapshot:
        return []
    paths = {partition_path(handle.schema, row) for row in changed_partitions(handle, snapshot)}
    head = latest_snapshot(handle.storage, handle.layout)
    if report.replayed or head is None or head.id != snapshot.id:
        paths.difference_update(each.path for each in live_partitions(handle, head))
    return sorted(paths)


def _checked_actions(handle: TableHandle, actions: Sequence[str] | None) -> tuple[str, ...]:
    kind: Kind[tuple[str, ...]] = TableOptions.partition_mark_done_action.kind
    if actions is None:
        found = handle.options.partition_mark_done_action
    else:
        try:
            found = kind.parse(",".join(actions))
        except (ValueError, TypeError):
            raise InvalidRequestError(
                f"actions is {actions!r}, but must be a list with {_SUCCESS_ACTION!r}, "
                f"{_DIRECTORY_ACTION!r} or both"
            ) from None
    for action in found:
        if action in _NEEDS:
            raise UnsupportedError(
                f"the action {action!r} needs {_NEEDS[action]}; nothing was marked. Mark "
                f"partitions of {handle.uri} by 'success-file' or 'done-partition', and notify "
                "other services from your own job"
            )
    return tuple(dict.fromkeys(found))


def _checked(handle: TableHandle, partitions: Sequence[PartitionSpec]) -> list[PartitionSpec]:
    keys = handle.schema.partition_keys
    if not keys:
        raise InvalidRequestError(
            f"{handle.uri} has no partition columns, so no partition can be marked as done: "
            "create a tag to show that its rows are complete"
        )
    if not partitions or not is_list(partitions):
        raise InvalidRequestError(
            "partitions must list the partitions that are done, each as a dict with a value for "
            f"{'each of ' if len(keys) > 1 else ''}{', '.join(keys)}, got {partitions!r}"
        )
    for spec in partitions:
        some_partitions(handle.schema, [spec])  # this call refuses a spec that is not a partition
        if missing := [key for key in keys if key not in spec]:
            raise InvalidRequestError(
                f"{dict(spec)!r} does not name one partition, because {missing[0]!r} is missing: "
                f"give a value for {'each of ' if len(keys) > 1 else ''}{', '.join(keys)}"
            )
    return list(partitions)


def _rows(
    handle: TableHandle, specs: Sequence[PartitionSpec], *, allow_empty: bool
) -> dict[str, int]:
    """Return the number of rows of each partition, by its directory relative to the table.

    Raise NotFoundError if a partition has no rows, unless ``allow_empty`` is True.
    """
    live = live_partitions(handle, latest_snapshot(handle.storage, handle.layout))
    by_row = {partition.row: partition for partition in live}
    found: dict[str, int] = {}
    for spec in specs:
        row = _row(handle, spec)
        # Rows of equal values may differ, such as those of CHAR values with blanks.
        there = by_row.get(row) or next(iter(chosen(handle, live, [spec])), None)
        path = there.path if there else partition_path(handle.schema, row)
        if there is None and not allow_empty:
            raise NotFoundError(
                f"partition {path} of {handle.uri} has no rows: check its values. To mark a "
                "partition without rows, pass allow_empty=True"
            )
        found[path] = there.rows if there else 0
    return found


def _row(handle: TableHandle, spec: PartitionSpec) -> bytes:
    [values] = some_partitions(handle.schema, [spec]).specs
    fields = partition_fields(handle.schema)
    found: list[Any] = [
        values_from_arrow(values[position], field.type)[0] for position, field in enumerate(fields)
    ]
    return frame_row(encode_row(found, [field.type for field in fields]), len(fields))


def _marks(handle: TableHandle, path: str, actions: Sequence[str]) -> list[str]:
    places = {
        _SUCCESS_ACTION: _success_file(handle, path),
        _DIRECTORY_ACTION: _done_directory(handle, path),
    }
    return [places[action] for action in actions]


def _mark(handle: TableHandle, path: str, actions: Sequence[str], made: int | None) -> None:
    for action in actions:
        if action == _DIRECTORY_ACTION:
            handle.storage.make_directory(_done_directory(handle, path))
            continue
        now = handle.environment.now_millis()
        times = {"creationTime": now if made is None else made, "modificationTime": now}
        content = json.dumps(times, indent=2, separators=(",", " : ")).encode()
        handle.storage.overwrite(_success_file(handle, path), content)


def _creation_time(handle: TableHandle, path: str) -> int | None:
    """Return the epoch milliseconds at which the partition ``path`` was first marked as done.

    Return None if its success file is missing or cannot be read.
    """
    with suppress(NotFoundError, TooLargeError, *NO_JSON, KeyError, TypeError):
        return int(json.loads(handle.storage.read(_success_file(handle, path)))["creationTime"])
    return None


def _success_file(handle: TableHandle, path: str) -> str:
    return f"{handle.layout.root}/{path}/{SUCCESS_FILE}"


def _done_directory(handle: TableHandle, path: str) -> str:
    return f"{handle.layout.root}/{path}{_DONE_SUFFIX}"
