"""What is checked of prepared messages before anything is written.

A message travels: it may come to another table than it was made for, or after the table has
changed. Each is refused with both sides named. That it comes twice is found in ``new_files.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.paimon.commit.hash_conflicts import require_distinct_keys, require_one_writer
from lakeformat.paimon.commit.same_table import require_there
from lakeformat.paimon.commit.written_paths import written_paths
from lakeformat.paimon.handle import UNAWARE_BUCKET, TableHandle, is_unaware
from lakeformat.paimon.layout import POSTPONE_BUCKET
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.storage import Storage

__all__ = ["are_there", "check_foreign_messages", "check_origin"]

_FEW_FILES = 4
_ASKED_AT_ONCE = 16


def check_foreign_messages(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Refuse messages that are not of this table as it is."""
    check_origin(handle, messages)
    for message in messages:
        _check_bucket(handle, message)
    _require_files(handle, messages)
    require_one_writer(handle, messages)
    require_distinct_keys(handle, messages)


def check_origin(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Refuse messages of another table or branch, as far as their schemas tell."""
    newest_schema = require_there(handle)
    compared: set[tuple[str, int]] = set()
    for message in messages:
        files = [*message.written_files(), *message.deleted_files, *message.compact_before]
        ids = {file.schema_id for file in files} or {handle.schema.id}
        for file in files:
            if file.schema_id > newest_schema:
                raise InvalidRequestError(
                    f"{file.file_name} was written with schema {file.schema_id}, and the newest of "
                    f"{handle.uri} is {newest_schema}: the message is of another table"
                    f"{_origin(message)}"
                )
        for schema_id in sorted(ids):
            if message.branch != handle.layout.branch:
                if (message.branch, schema_id) not in compared:
                    _check_branch(handle, message, schema_id)
                compared.add((message.branch, schema_id))


def _check_branch(handle: TableHandle, message: CommitMessage, schema_id: int) -> None:
    """Branches number their schemas each for itself, and readers take a number of their own."""
    elsewhere = replace(handle.layout, branch=message.branch)
    try:
        theirs = read_schema(handle.storage, elsewhere, schema_id)
        same = theirs == read_schema(handle.storage, handle.layout, schema_id)
        why = "is not the same there"
    except LakeError as reason:
        same, why = False, f"cannot be compared: {reason}"
    if not same:
        raise InvalidRequestError(
            f"a message was prepared on branch {message.branch!r}{_origin(message)}, and "
            f"this is branch {handle.layout.branch!r} of {handle.uri}: schema {schema_id} {why}. "
            "Nothing was done; commit it on its own branch, or write the rows again on this one"
        )


def _origin(message: CommitMessage) -> str:
    """What a message says of where it comes from, to stand behind what is said of it."""
    where = [] if message.table is None else [f"for {message.table}"]
    base = [] if message.base_snapshot is None else [f"on snapshot {message.base_snapshot}"]
    return f" (prepared {' '.join(where + base)})" if where or base else ""


def _check_bucket(handle: TableHandle, message: CommitMessage) -> None:
    bucket, option = message.bucket, int(handle.options.bucket)
    count = option if message.total_buckets is None else message.total_buckets
    if not (_is_of_table(count, option) and _is_among(bucket, count, is_unaware(handle))):
        raise InvalidRequestError(
            f"a message{_origin(message)} speaks of bucket {bucket} of {count}, which "
            f"{handle.uri} cannot have ('bucket' is '{option}'): it is of another table, or of "
            "this one before its buckets changed"
        )


def _is_of_table(count: int, option: int) -> bool:
    """A partition may have other buckets than new ones get, but not where there are none."""
    return count == option or (count > 0 and (option > 0 or option == POSTPONE_BUCKET))


def _is_among(bucket: int, count: int, unaware: bool) -> bool:
    if count == UNAWARE_BUCKET:
        return bucket == 0 if unaware else bucket >= 0
    return bucket == POSTPONE_BUCKET if count == POSTPONE_BUCKET else 0 <= bucket < count


def _require_files(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Every file is there: else it is of another table, or its writer has removed it."""
    placed = [(one, place) for one in messages for place in written_paths(handle, [one])]
    there = are_there([place for _, place in placed])
    for (message, (storage, path)), exists in zip(placed, there, strict=True):
        if not exists:
            raise InvalidRequestError(
                f"{storage.uri(path)} does not exist: the message is of another table than "
                f"{handle.uri}{_origin(message)}, or its writer has removed its "
                "files; write the rows again"
            )


def are_there(paths: Sequence[tuple[Storage, str]]) -> list[bool]:
    """Which of the files exist."""
    if len(paths) <= _FEW_FILES:
        return [storage.exists(path) for storage, path in paths]
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        return list(pool.map(lambda place: place[0].exists(place[1]), paths))
