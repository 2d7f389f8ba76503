"""Where the files of messages are: data files with what lies beside them, and index files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.handle import TableHandle
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.data_file_meta import DataFileMeta
from lakeformat.metadata.index_manifest import IndexManifestEntry
from lakeformat.partition import partition_path
from lakeformat.storage import Storage, resolve

__all__ = ["written_paths"]


def written_paths(
    handle: TableHandle, messages: Sequence[CommitMessage]
) -> Iterator[tuple[Storage, str]]:
    """Every file the messages' writers wrote, each with the storage it is on."""
    for message in messages:
        try:
            directory = partition_path(handle.schema, message.partition)
        except CorruptTableError as reason:
            raise InvalidRequestError(f"a message is not of {handle.uri}: {reason}") from None
        for file in message.written_files():
            yield from _data_file(handle, message.bucket, directory, file)
        for entry in message.written_index_files():
            yield _index_file(handle, message.bucket, directory, entry)


def _data_file(
    handle: TableHandle, bucket: int, directory: str, file: DataFileMeta
) -> Iterator[tuple[Storage, str]]:
    storage, path = handle.storage, handle.layout.data_file(bucket, file.file_name, directory)
    if file.external_path is not None:
        storage, path = resolve(file.external_path, handle.storage)
    yield storage, path
    for name in file.extra_files:
        inside = handle.layout.data_file(bucket, name, directory).rpartition("/")[2]
        yield storage, f"{path.rpartition('/')[0]}/{inside}"


def _index_file(
    handle: TableHandle, bucket: int, directory: str, entry: IndexManifestEntry
) -> tuple[Storage, str]:
    if entry.external_path is not None:
        return resolve(entry.external_path, handle.storage)
    if handle.options.index_file_in_data_file_dir:
        return handle.storage, handle.layout.data_file(bucket, entry.file_name, directory)
    return handle.storage, handle.layout.index_file(entry.file_name)
