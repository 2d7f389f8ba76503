"""What is checked of prepared messages before anything is written.

A message travels: it may come to another table than it was made for, or after the table has
changed. Each is refused with both sides named. That it comes twice is found in ``new_files.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from lakeformat.commit.written_paths import written_paths
from lakeformat.errors import InvalidRequestError
from lakeformat.handle import UNAWARE_BUCKET, TableHandle, is_unaware
from lakeformat.layout import POSTPONE_BUCKET
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.data_file_meta import DataFileMeta
from lakeformat.metadata.schema_file import latest_schema_id

__all__ = ["admit"]

_FEW_FILES = 4
_ASKED_AT_ONCE = 16


def admit(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Refuse messages that are not of this table as it is."""
    newest_schema = latest_schema_id(handle.storage, handle.layout)
    for message in messages:
        _check_bucket(handle, message)
        for file in message.written_files():
            _check_file(handle, message, file, newest_schema)
    _require_files(handle, messages)


def _check_bucket(handle: TableHandle, message: CommitMessage) -> None:
    bucket, option = message.bucket, int(handle.options.bucket)
    count = option if message.total_buckets is None else message.total_buckets
    if not (_is_of_table(count, option) and _is_among(bucket, count, is_unaware(handle))):
        raise InvalidRequestError(
            f"a message speaks of bucket {bucket} of {count}, which {handle.uri} cannot have "
            f"('bucket' is '{option}'): it is of another table, or of this one before its buckets "
            "changed"
        )


def _is_of_table(count: int, option: int) -> bool:
    """A partition may have other buckets than new ones get, but not where there are none."""
    return count == option or (count > 0 and (option > 0 or option == POSTPONE_BUCKET))


def _is_among(bucket: int, count: int, unaware: bool) -> bool:
    if count == UNAWARE_BUCKET:
        return bucket == 0 if unaware else bucket >= 0
    return bucket == POSTPONE_BUCKET if count == POSTPONE_BUCKET else 0 <= bucket < count


def _check_file(
    handle: TableHandle, message: CommitMessage, file: DataFileMeta, newest_schema: int | None
) -> None:
    if newest_schema is None or file.schema_id > newest_schema:
        raise InvalidRequestError(
            f"{file.file_name} was written with schema {file.schema_id}, and the newest of "
            f"{handle.uri} is {newest_schema}: the message is of another table"
        )
    place = handle.layout.data_file(message.bucket, file.file_name).rpartition("/bucket-")[2]
    if file.external_path is not None and not file.external_path.endswith(f"/bucket-{place}"):
        raise InvalidRequestError(
            f"{file.external_path} is no place for a file {file.file_name} of bucket "
            f"{message.bucket}: the message is of another table"
        )


def _require_files(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Every file is there: else it is of another table, or its writer has removed it."""
    paths = list(written_paths(handle, messages))
    if len(paths) <= _FEW_FILES:
        there = [storage.exists(path) for storage, path in paths]
    else:
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            there = list(pool.map(lambda place: place[0].exists(place[1]), paths))
    for (storage, path), exists in zip(paths, there, strict=True):
        if not exists:
            raise InvalidRequestError(
                f"{storage.uri(path)} does not exist: the message is of another "
                "table, or its writer has removed its files; write the rows again"
            )
