# SPDX-License-Identifier: Apache-2.0
"""The files that messages name (data files with their extra files, and index files): their paths,
and their deletion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakeformat.errors import CorruptTableError, InvalidRequestError, LakeError
from lakeformat.paimon.file_places import beside, data_file_place, index_file_place
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.partition import partition_path
from lakeformat.storage import Storage

__all__ = ["delete_written", "written_paths"]


def written_paths(
    handle: TableHandle, messages: Sequence[CommitMessage]
) -> Iterator[tuple[Storage, str]]:
    """Yield the storage and path of every file that the writers of the messages wrote.

    Raise InvalidRequestError if a message was prepared for a table with other partition columns.
    """
    for message in messages:
        try:
            directory = partition_path(handle.schema, message.partition)
        except CorruptTableError as reason:
            raise InvalidRequestError(
                f"a message was not prepared for {handle.uri}: its partition does not fit the "
                "table's partition columns. Use it with the table it was prepared for"
            ) from reason
        for file in message.written_files():
            yield from _data_file(handle, message.bucket, directory, file)
        for entry in message.written_index_files():
            yield index_file_place(handle, entry)


def _data_file(
    handle: TableHandle, bucket: int, directory: str, file: DataFileMeta
) -> Iterator[tuple[Storage, str]]:
    yield data_file_place(handle, bucket, file, directory)
    for name in file.extra_files:
        yield beside(handle, bucket, file, directory, name)


def delete_written(handle: TableHandle, messages: Sequence[CommitMessage]) -> list[str]:
    """Delete the files of messages, and return the URIs of those that could not be deleted.

    The caller must know that no snapshot refers to the files: this function does not check it.
    """
    left: list[str] = []
    for storage, path in [
        *written_paths(handle, messages)
    ]:  # resolve all paths first: if one is refused, nothing is deleted
        try:
            storage.delete(path)
        except LakeError:
            left.append(storage.uri(path))
    return left
