# SPDX-License-Identifier: Apache-2.0
"""Deletes the files of commit messages; refuses if a branch of the table refers to any of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.foreign_messages import are_there, check_origin
from lakeformat.paimon.commit.new_files import NewFileCheck
from lakeformat.paimon.commit.written_files import delete_written, written_paths
from lakeformat.paimon.deletion.candidates import Candidates
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.deletion.places import FilePlaces
from lakeformat.paimon.deletion.protection import find_protection
from lakeformat.paimon.deletion.retried_reads import look_again
from lakeformat.paimon.expiry_race import again_if_overtaken
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.changelog_directory import (
    changelog_ids,
    read_changelog_if_present,
)
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.manifest_columns import columns_of
from lakeformat.paimon.metadata.manifest_entry import FileKind, ManifestEntry
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.tables.removal import FileClass

__all__ = ["FilesElsewhere", "abort_messages"]

_log = logging.getLogger(__name__)
_PUBLISHED = (
    "its rows are published, so no file was removed. Pass only messages that are not committed; "
    "to delete rows, use an overwrite, Table.drop_partitions or Table.truncate"
)


def abort_messages(handle: TableHandle, messages: Sequence[CommitMessage]) -> list[str]:
    """Delete the files of messages that were not committed.

    Return the URIs of files that could not be deleted. Raise InvalidRequestError if the messages
    belong to another table, if any branch of this table refers to one of the files, or if no file
    exists.
    """
    try:
        check_origin(handle, messages)
        check = NewFileCheck(handle, messages, _PUBLISHED)
        again_if_overtaken(
            handle, lambda: check.check(latest_snapshot(handle.storage, handle.layout))
        )
        for _ in written_paths(handle, messages):
            pass  # refuses messages of a table with other partition columns
        if needed := FilesElsewhere(handle, messages).reason(messages):
            raise InvalidRequestError(f"{needed}: {_PUBLISHED}")
    except InvalidRequestError as reason:
        raise InvalidRequestError(f"these messages cannot be aborted: {reason}") from None
    _require_some(handle, messages)
    return delete_written(handle, messages)


class FilesElsewhere:
    """Checks if another branch, a tag or a changelog needs files of commit messages.

    Branches, tags and changelogs are read only once, when the object is created.
    """

    def __init__(self, handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
        self._handle = handle
        self._needed = _needed(handle, messages)

    def reason(self, messages: Sequence[CommitMessage]) -> str | None:
        """Return the reason why files of the messages must be kept; None if all may be deleted."""
        found = self._needed and sorted(self._needed & _keys(self._handle, messages))
        if not found:
            return None
        name = found[0].rpartition("/")[2]
        return f"another branch, a tag or a changelog of {self._handle.uri} has the file {name}"


def _needed(handle: TableHandle, messages: Sequence[CommitMessage]) -> set[str]:
    """Return the keys of files that another branch, a tag or a changelog needs.

    A data file is returned only if ``messages`` name it. Index files are returned only if
    ``messages`` name at least one.
    """
    storage, layout = handle.storage, handle.layout
    files = [*_written(messages)]
    has_indexes = any(True for each in messages for _ in each.written_index_files())
    if not files and not has_indexes:
        return set()
    numbers = changelog_ids(storage, layout)
    if layout.branch == MAIN_BRANCH and not numbers and not branches(storage, layout):
        return set()

    def needed() -> set[str]:
        candidates = Candidates(handle)
        candidates.add(columns_of(files), FileClass.DATA, "not committed")
        read = partial(read_changelog_if_present, storage, layout)
        kept = filter(None, in_parallel(handle, read, numbers))
        protection = find_protection(handle, oldest=None, changelogs=kept)
        found = protection.spare(candidates)
        return found | protection.index_files() if has_indexes else found

    return look_again(handle, needed)


def _keys(handle: TableHandle, messages: Sequence[CommitMessage]) -> set[str]:
    places = FilePlaces(handle)
    indexes = {places.index_key(one) for each in messages for one in each.written_index_files()}
    return indexes.union(*places.keys(columns_of([*_written(messages)])))


def _written(messages: Sequence[CommitMessage]) -> Iterator[ManifestEntry]:
    for message in messages:
        for file in message.written_files():
            yield ManifestEntry(FileKind.ADD, message.partition, message.bucket, 0, file)


def _require_some(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Raise InvalidRequestError if no file of ``messages`` exists.

    The messages then probably belong to another table. If only some files are missing, log a
    warning: an earlier abort was probably interrupted.
    """
    paths = list(written_paths(handle, messages))
    there = are_there(paths)
    if not paths or all(there):
        return
    pairs = zip(paths, there, strict=True)
    missing = [storage.uri(path) for (storage, path), is_there in pairs if not is_there]
    if len(missing) < len(paths):
        _log.warning(
            "abort on %s: deletes %d of %d files; the rest, such as %s, does not exist here. No "
            "action needed if an earlier abort was interrupted. Otherwise some messages may belong "
            "to another table: abort them there",
            *(handle.uri, len(paths) - len(missing), len(paths), missing[0]),
        )
        return
    tables = sorted({each.table for each in messages if each.table is not None})
    of = f" The messages were written for {', '.join(tables)}." if tables else ""
    raise InvalidRequestError(
        f"no file of these messages is in {handle.uri}, so nothing was "
        f"removed: {missing[0]} does not exist.{of} Either the files are removed already, or the "
        "messages belong to another table: abort them there"
    )
