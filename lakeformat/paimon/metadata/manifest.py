# SPDX-License-Identifier: Apache-2.0
"""Manifests: ``manifest/manifest-<uuid>-<n>``, each with entries of data files that commits added
or deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns, columns_of
from lakeformat.paimon.metadata.manifest_columns.encode import encode_manifest, entry_record
from lakeformat.paimon.metadata.manifest_columns.live import (
    added_twice,
    cancel_pairs,
    deleted_without_add,
    live_rows,
    meet,
)
from lakeformat.paimon.metadata.manifest_columns.read import (
    OpenManifest,
    join_manifests,
    open_manifest,
)
from lakeformat.paimon.metadata.manifest_columns.schema import MANIFEST_SCHEMA
from lakeformat.paimon.metadata.manifest_entry import FORMAT_VERSION, FileKind, ManifestEntry
from lakeformat.paimon.metadata.manifest_meta import ManifestMeta
from lakeformat.paimon.metadata.record_file import AVRO, encode_record_file, manifest_codec
from lakeformat.paimon.metadata.referrer import referred_to_by
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE, TooLargeError
from lakeformat.types.count_text import counted

__all__ = [
    "FORMAT_VERSION",
    "FileKind",
    "ManifestColumns",
    "ManifestEntry",
    "cancel_pairs",
    "encode_columns",
    "live_files",
    "live_rows",
    "meet",
    "read_manifest_bytes",
    "read_manifests",
    "write_columns",
    "write_content",
    "write_manifest",
]

_FEW_ENTRIES = 50
"""Fewer entries than this are written as single records, which is faster than as columns."""

_FEW_MANIFESTS = 4
"""Up to this number of manifests, threads take more time than they save."""

_READERS = 4
"""The number of manifests that are read in parallel, so that reading and decoding overlap."""


def live_files(entries: Iterable[ManifestEntry], source: str) -> list[ManifestEntry]:
    """Return the ADD entries that no later DELETE cancels.

    Raise CorruptTableError for a second ADD of a file, or for a DELETE without an ADD.
    ``source`` is the name of the table in the error.
    """
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
    """Write entries to the new file ``manifest/<name>``; return its size in bytes."""
    found = list(entries)
    if len(found) >= _FEW_ENTRIES:
        content = encode_columns(columns_of(found), options)
    else:
        content = _encode_records(found, options)
    return write_content(storage, layout, name, content)


def write_columns(
    storage: Storage,
    layout: TableLayout,
    name: str,
    columns: ManifestColumns,
    options: TableOptions,
) -> int:
    """Write the entries ``columns`` to the new file ``manifest/<name>``.

    Return the size of the file in bytes.
    """
    if len(columns) < _FEW_ENTRIES:
        return write_manifest(storage, layout, name, columns.entries(), options)
    return write_content(storage, layout, name, encode_columns(columns, options))


def encode_columns(columns: ManifestColumns, options: TableOptions) -> bytes:
    """Return the content of a manifest with these entries, in the format ``manifest.format``."""
    if options.manifest_format != AVRO:
        return _encode_records(columns.entries(), options)
    return encode_manifest(
        columns,
        compression=manifest_codec(options),
        zstd_level=options.file_compression_zstd_level,
    )


def _encode_records(entries: Iterable[ManifestEntry], options: TableOptions) -> bytes:
    return encode_record_file(MANIFEST_SCHEMA, map(entry_record, entries), options)


def write_content(storage: Storage, layout: TableLayout, name: str, content: bytes) -> int:
    """Write an encoded manifest to the new file ``manifest/<name>``; return its size in bytes."""
    with storage.open_output(layout.manifest(name)) as stream:
        stream.write(content)
    return len(content)


def read_manifests(
    storage: Storage, layout: TableLayout, manifests: Sequence[ManifestMeta | str]
) -> ManifestColumns:
    """Return the entries of many manifests as columns, one manifest after the other.

    Raise CorruptTableError if a manifest is missing or damaged. Also raise it if a ManifestMeta
    states another number of added or deleted files than its manifest has.
    """

    def read(manifest: ManifestMeta | str) -> OpenManifest:
        name, size, list_uri = manifest, None, None
        if isinstance(manifest, ManifestMeta):
            name, size, list_uri = manifest.file_name, manifest.file_size, manifest.named_by
        with referred_to_by(list_uri or "a manifest list"):
            return open_manifest(*read_manifest_bytes(storage, layout, str(name), size=size))

    if len(manifests) <= _FEW_MANIFESTS:
        opened = [read(manifest) for manifest in manifests]
    else:
        with ThreadPoolExecutor(_READERS) as pool:
            opened = list(pool.map(read, manifests))
    columns, lengths = join_manifests(opened)
    _check_counts(manifests, [each.uri for each in opened], columns, lengths)
    return columns


def _check_counts(
    manifests: Sequence[ManifestMeta | str],
    uris: Sequence[str],
    columns: ManifestColumns,
    lengths: Sequence[int],
) -> None:
    deleted_before = np.concatenate(([0], np.cumsum(columns.is_delete)))
    ends = np.cumsum([0, *lengths])
    deletes = np.diff(deleted_before[ends]).tolist()
    for manifest, uri, length, deleted in zip(manifests, uris, lengths, deletes, strict=True):
        if isinstance(manifest, str):
            continue
        expected = (manifest.num_added_files, manifest.num_deleted_files)
        if expected != (length - deleted, deleted):
            raise CorruptTableError(
                f"{uri} adds {counted(length - deleted, 'file')} and deletes {deleted}, but "
                f"{manifest.named_by or 'its manifest list'} records {expected[0]} and "
                f"{expected[1]}, so one of the two is damaged: restore both from a backup, or "
                "roll the table back to an earlier snapshot"
            )


def read_manifest_bytes(
    storage: Storage, layout: TableLayout, name: str, *, size: int | None = None
) -> tuple[bytes, str]:
    """Return the content and the URI of the manifest or manifest list ``manifest/<name>``.

    Raise CorruptTableError if the file is missing, or does not have ``size`` bytes;
    ``size=None`` skips this check.
    """
    path = layout.manifest(name)
    uri = storage.uri(path)
    try:
        content = storage.read(path, LARGE_FILE if size is None else min(size, LARGE_FILE))
    except TooLargeError as refused:
        if size is None or size > LARGE_FILE:
            raise
        raise _other_size(uri, refused.size, size) from None
    except NotFoundError:
        is_manifest = name.startswith("manifest-") and not name.startswith("manifest-list-")
        other = "see what `lake missing-manifests TABLE` can repair"
        raise CorruptTableError(
            f"{uri} is missing although a snapshot refers to it; if the snapshot has just "
            "expired, read the newest one. Otherwise restore the file from a backup, or "
            f"{other if is_manifest else 'roll the table back to an earlier snapshot'}"
        ) from None
    if size is not None and len(content) != size:
        raise _other_size(uri, len(content), size)
    return content, uri


def _other_size(uri: str, found: int, written: int) -> CorruptTableError:
    return CorruptTableError(
        f"{uri} has {found} bytes instead of {written}; "
        "restore the file from a backup or roll the table back to an earlier snapshot"
    )
