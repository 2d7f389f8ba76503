"""Manifests: ``manifest/manifest-<uuid>-<n>``, the files one commit added and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.layout import TableLayout
from lakeformat.metadata.avro_file import decode_avro_file, encode_avro_file
from lakeformat.metadata.data_file_meta import DATA_FILE_FIELDS, DataFileMeta
from lakeformat.options import TableOptions
from lakeformat.storage import Storage

__all__ = ["FileKind", "ManifestEntry", "live_files", "read_manifest", "write_manifest"]

FORMAT_VERSION = 2


class FileKind(IntEnum):
    """Whether an entry brings a file in or takes it out."""

    ADD = 0
    DELETE = 1


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One file of one bucket, added or deleted."""

    kind: FileKind
    partition: bytes
    """The partition's framed binary row; one without fields when unpartitioned."""
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two entries speak of the same file."""
        file = self.file
        return (
            self.partition,
            self.bucket,
            file.level,
            file.file_name,
            file.extra_files,
            file.embedded_file_index,
            file.external_path,
        )


def live_files(entries: Iterable[ManifestEntry], source: str) -> list[ManifestEntry]:
    """The files left once every DELETE has met its ADD; ``source`` names the table in errors."""
    added: dict[tuple[object, ...], ManifestEntry] = {}
    unmatched: dict[tuple[object, ...], ManifestEntry] = {}
    for entry in entries:
        key = entry.identity
        if entry.kind is FileKind.ADD:
            if key in added:
                raise CorruptTableError(
                    f"{source} adds {entry.file.file_name} of bucket {entry.bucket} twice; "
                    "roll the table back to the snapshot before the second commit"
                )
            added[key] = entry
        elif added.pop(key, None) is None:
            unmatched[key] = entry
    for entry in unmatched.values():
        raise CorruptTableError(
            f"{source} deletes {entry.file.file_name} of bucket {entry.bucket}, "
            "which it never added; roll the table back to the snapshot before that commit"
        )
    return list(added.values())


def write_manifest(
    storage: Storage,
    layout: TableLayout,
    name: str,
    entries: Iterable[ManifestEntry],
    options: TableOptions,
) -> int:
    """Write entries under a name nobody else uses; the size in bytes."""
    content = encode_avro_file(
        _SCHEMA,
        (_to_record(entry) for entry in entries),
        compression=options.manifest_compression,
        zstd_level=options.file_compression_zstd_level,
    )
    with storage.open_output(layout.manifest(name)) as stream:
        stream.write(content)
    return len(content)


def read_manifest(storage: Storage, layout: TableLayout, name: str) -> list[ManifestEntry]:
    """The entries of a manifest, in the order they were written."""
    content, uri = read_manifest_bytes(storage, layout, name)
    records = decode_avro_file(content, uri)
    check_version(records, FORMAT_VERSION, uri)
    try:
        return [_from_record(record) for record in records]
    except (KeyError, TypeError, ValueError) as reason:
        raise CorruptTableError(f"{uri} is not a manifest: {reason!r}") from None


def read_manifest_bytes(storage: Storage, layout: TableLayout, name: str) -> tuple[bytes, str]:
    """Content and address of a manifest or manifest list that some file refers to."""
    path = layout.manifest(name)
    uri = storage.uri(path)
    try:
        return storage.read(path), uri
    except NotFoundError:
        raise CorruptTableError(
            f"{uri} is missing although a snapshot refers to it; if the snapshot was just "
            "expired, read again from the latest one, else restore the file from a backup"
        ) from None


def check_version(records: Iterable[Mapping[str, Any]], expected: int, uri: str) -> None:
    """Refuse a file of another format version, which would be misread."""
    for record in records:
        if record.get("_VERSION") != expected:
            raise CorruptTableError(
                f"{uri} has format version {record.get('_VERSION')}, this version reads {expected}"
            )


def _to_record(entry: ManifestEntry) -> dict[str, Any]:
    return {
        "_VERSION": FORMAT_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": entry.file.to_record(),
    }


def _from_record(record: Mapping[str, Any]) -> ManifestEntry:
    return ManifestEntry(
        FileKind(record["_KIND"]),
        record["_PARTITION"],
        record["_BUCKET"],
        record["_TOTAL_BUCKETS"],
        DataFileMeta.from_record(record["_FILE"]),
    )


_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "org.apache.paimon.avro.generated.record",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_TOTAL_BUCKETS", "type": "int"},
        {
            "name": "_FILE",
            "type": {"type": "record", "name": "record__FILE", "fields": DATA_FILE_FIELDS},
        },
    ],
}
