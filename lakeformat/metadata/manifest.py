"""Manifests: ``manifest/manifest-<uuid>-<n>``, the files one commit added and removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.layout import TableLayout
from lakeformat.metadata.avro_file import check_version
from lakeformat.metadata.manifest_columns import ManifestColumns, columns_of
from lakeformat.metadata.manifest_columns.encode import encode_entries, encode_manifest
from lakeformat.metadata.manifest_columns.live import (
    added_twice,
    cancel_pairs,
    deleted_without_add,
    live_rows,
)
from lakeformat.metadata.manifest_columns.read import (
    OpenManifest,
    decode_manifest,
    decode_manifest_by_record,
    join_manifests,
    open_manifest,
)
from lakeformat.metadata.manifest_entry import FORMAT_VERSION, FileKind, ManifestEntry
from lakeformat.options import TableOptions
from lakeformat.storage import Storage

__all__ = [
    "FORMAT_VERSION",
    "FileKind",
    "ManifestColumns",
    "ManifestEntry",
    "cancel_pairs",
    "check_version",
    "encode_columns",
    "live_files",
    "live_rows",
    "read_manifest",
    "read_manifest_bytes",
    "read_manifests",
    "write_content",
    "write_manifest",
]

_FEW_ENTRIES = 50
_FEW_BYTES = 4_000
"""Below these, single records are faster than columns."""

_FEW_MANIFESTS = 4
"""Up to here they are read one by one: starting threads costs more."""

_READERS = 4
"""Manifests read at a time: storage answers and blocks unpack while others are waited for."""


def live_files(entries: Iterable[ManifestEntry], source: str) -> list[ManifestEntry]:
    """The files left once every DELETE has met its ADD; ``source`` names the table in errors."""
    added: dict[tuple[object, ...], ManifestEntry] = {}
    unmatched: list[ManifestEntry] = []
    for entry in entries:
        key = entry.identity
        if entry.kind is FileKind.ADD:
            if key in added:
                raise added_twice(entry, source)
            added[key] = entry
        elif added.pop(key, None) is None:
            unmatched.append(entry)
    if unmatched:
        raise deleted_without_add(unmatched[0], source)
    return list(added.values())


def write_manifest(
    storage: Storage,
    layout: TableLayout,
    name: str,
    entries: Iterable[ManifestEntry],
    options: TableOptions,
) -> int:
    """Write entries under a name nobody else uses; the size in bytes."""
    found = list(entries)
    if len(found) >= _FEW_ENTRIES:
        content = encode_columns(columns_of(found), options)
        return write_content(storage, layout, name, content)
    content = encode_entries(
        found,
        compression=options.manifest_compression,
        zstd_level=options.file_compression_zstd_level,
    )
    return write_content(storage, layout, name, content)


def encode_columns(columns: ManifestColumns, options: TableOptions) -> bytes:
    """The content of a manifest of these entries."""
    return encode_manifest(
        columns,
        compression=options.manifest_compression,
        zstd_level=options.file_compression_zstd_level,
    )


def write_content(storage: Storage, layout: TableLayout, name: str, content: bytes) -> int:
    """Write an encoded manifest under a name nobody else uses; the size in bytes."""
    with storage.open_output(layout.manifest(name)) as stream:
        stream.write(content)
    return len(content)


def read_manifest(storage: Storage, layout: TableLayout, name: str) -> list[ManifestEntry]:
    """The entries of a manifest, in the order they were written."""
    content, uri = read_manifest_bytes(storage, layout, name)
    if len(content) < _FEW_BYTES:
        return decode_manifest_by_record(content, uri)
    return decode_manifest(content, uri).entries()


def read_manifests(storage: Storage, layout: TableLayout, names: Sequence[str]) -> ManifestColumns:
    """The entries of many manifests as columns, one manifest after the other."""

    def read(name: str) -> OpenManifest:
        return open_manifest(*read_manifest_bytes(storage, layout, name))

    if len(names) <= _FEW_MANIFESTS:
        return join_manifests([read(name) for name in names])
    with ThreadPoolExecutor(_READERS) as pool:
        return join_manifests(list(pool.map(read, names)))


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
