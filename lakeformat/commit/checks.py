"""What is checked before a commit starts: a snapshot that cannot be read back is never made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lakeformat.errors import InvalidRequestError
from lakeformat.handle import TableHandle
from lakeformat.metadata.commit_message import CommitMessage
from lakeformat.metadata.manifest import ManifestEntry
from lakeformat.partition import partition_path
from lakeformat.type_rules import is_text

__all__ = [
    "check_arguments",
    "is_whole_number",
    "require_distinct_files",
    "require_files",
]

_LONG = range(-(2**63), 2**63)


def check_arguments(watermark: int | None, properties: Mapping[str, str] | None) -> None:
    """Refuse what a snapshot file cannot hold."""
    if watermark is not None and (not is_whole_number(watermark) or watermark not in _LONG):
        raise InvalidRequestError(f"a watermark is a whole number of 64 bits, got {watermark!r}")
    for key, value in (properties or {}).items():
        if not is_text(key) or not is_text(value):
            raise InvalidRequestError(
                f"properties are text for text, got {key!r}: {value!r}; write str(value)"
            )


def require_distinct_files(entries: Iterable[ManifestEntry]) -> None:
    """Refuse the same file twice in one commit: its rows would be there twice."""
    seen: set[tuple[object, ...]] = set()
    for entry in entries:
        if entry.identity in seen:
            raise InvalidRequestError(
                f"{entry.file.file_name} is in this commit twice: commit each message once"
            )
        seen.add(entry.identity)


def require_files(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Refuse messages whose files are not in this table: of another one, or given up."""
    for message in messages:
        directory = partition_path(handle.schema, message.partition)
        for file in message.new_files:
            path = handle.layout.data_file(message.bucket, file.file_name, directory)
            if file.external_path is None and not handle.storage.exists(path):
                raise InvalidRequestError(
                    f"{handle.storage.uri(path)} does not exist: the message is of another "
                    "table, or its writer has removed its files; write the rows again"
                )


def is_whole_number(value: object) -> bool:
    """An int, and not a bool, which Python takes for one."""
    return isinstance(value, int) and not isinstance(value, bool)
