# SPDX-License-Identifier: Apache-2.0
"""Checks messages of other processes before anything is published.

A message may belong to another table, or the table may have changed since the message was prepared.
The errors name the message's origin and this table. ``new_files.py`` finds messages that were
committed before.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.paimon.commit.hash_conflicts import require_distinct_keys, require_one_writer
from lakeformat.paimon.commit.same_table import require_there
from lakeformat.paimon.commit.written_files import written_paths
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET, UNAWARE_BUCKET
from lakeformat.storage import Storage

__all__ = ["are_there", "check_foreign_messages", "check_origin"]

_FEW_FILES = 4
_ASKED_AT_ONCE = 16


def check_foreign_messages(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Raise InvalidRequestError unless the messages fit this table, and their files exist.

    Raise NotFoundError if the table does not exist any more.
    """
    check_origin(handle, messages)
    for message in messages:
        _check_bucket(handle, message)
    _require_files(handle, messages)
    require_one_writer(handle, messages)
    require_distinct_keys(handle, messages)


def check_origin(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Raise InvalidRequestError for messages that do not fit the schemas of this table or branch.

    A message is refused if its files have a newer schema than this table. A message of another
    branch is also refused if the schema of its files differs between that branch and this one.
    Raise NotFoundError if this table does not exist any more.
    """
    newest_schema = require_there(handle)
    compared: set[tuple[str, int]] = set()
    for message in messages:
        files = [*message.written_files(), *message.deleted_files, *message.compact_before]
        ids = {file.schema_id for file in files} or {handle.schema.id}
        for file in files:
            if file.schema_id > newest_schema:
                raise InvalidRequestError(
                    f"{file.file_name} was written with schema {file.schema_id}, but the newest "
                    f"schema of {handle.uri} is {newest_schema}: the message{_origin(message)} "
                    "belongs to another table; commit or abort it there"
                )
        for schema_id in sorted(ids):
            if message.branch != handle.layout.branch:
                if (message.branch, schema_id) not in compared:
                    _check_branch(handle, message, schema_id)
                compared.add((message.branch, schema_id))


def _check_branch(handle: TableHandle, message: CommitMessage, schema_id: int) -> None:
    """Raise InvalidRequestError unless the schema has the same content on the message's branch as
    here.
    """
    elsewhere = replace(handle.layout, branch=message.branch)
    try:
        theirs = read_schema(handle.storage, elsewhere, schema_id)
        same = theirs == read_schema(handle.storage, handle.layout, schema_id)
        why = "differs between the branches"
    except LakeError as reason:
        same, why = False, f"cannot be compared: {reason}"
    if not same:
        raise InvalidRequestError(
            f"a message was prepared on branch {message.branch!r}{_origin(message)}, but this is "
            f"branch {handle.layout.branch!r} of {handle.uri}: schema {schema_id} {why}. "
            "Nothing was changed; commit or abort the message on its branch, and write the rows "
            "again if they belong here"
        )


def _origin(message: CommitMessage) -> str:
    """Return " (prepared for <table> on snapshot <id>)", or "" if the message records neither."""
    where = [] if message.table is None else [f"for {message.table}"]
    base = [] if message.base_snapshot is None else [f"on snapshot {message.base_snapshot}"]
    return f" (prepared {' '.join(where + base)})" if where or base else ""


def _check_bucket(handle: TableHandle, message: CommitMessage) -> None:
    bucket, option = message.bucket, int(handle.options.bucket)
    count = option if message.total_buckets is None else message.total_buckets
    if not (_is_of_table(count, option) and _is_among(bucket, count, is_unaware(handle))):
        raise InvalidRequestError(
            f"a message{_origin(message)} is for bucket {bucket} with 'bucket' = '{count}', but "
            f"{handle.uri} with 'bucket' = '{option}' cannot have this bucket: the message belongs "
            "to another table, or to this one before its bucket count changed. Write the rows again"
        )


def _is_of_table(count: int, option: int) -> bool:
    """Return True if a table whose option ``bucket`` is ``option`` may have files of the bucket
    count ``count``.

    Partitions may have different counts, but only with fixed or postponed buckets.
    """
    return count == option or (count > 0 and (option > 0 or option == POSTPONE_BUCKET))


def _is_among(bucket: int, count: int, unaware: bool) -> bool:
    if count == UNAWARE_BUCKET:
        return bucket == 0 if unaware else bucket >= 0
    return bucket == POSTPONE_BUCKET if count == POSTPONE_BUCKET else 0 <= bucket < count


def _require_files(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Raise InvalidRequestError if a file is missing: it is of another table, or its writer deleted
    it.
    """
    placed = [(one, place) for one in messages for place in written_paths(handle, [one])]
    there = are_there([place for _, place in placed])
    for (message, (storage, path)), exists in zip(placed, there, strict=True):
        if not exists:
            raise InvalidRequestError(
                f"{storage.uri(path)} does not exist: the message{_origin(message)} belongs to "
                f"another table than {handle.uri}, or its files were deleted, for example by an "
                "abort or an orphan removal. Write the rows again"
            )


def are_there(paths: Sequence[tuple[Storage, str]]) -> list[bool]:
    """Return a list with True for each file that exists, and False for each other file."""
    if len(paths) <= _FEW_FILES:
        return [storage.exists(path) for storage, path in paths]
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        return list(pool.map(lambda place: place[0].exists(place[1]), paths))
