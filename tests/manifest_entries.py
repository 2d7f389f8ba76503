"""The entries of a single manifest, one object for each."""

from __future__ import annotations

from functools import lru_cache

from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest import ManifestEntry, read_manifest_bytes
from lakeformat.paimon.metadata.manifest_columns.read import decode_manifest_by_record
from lakeformat.storage import Storage

__all__ = ["entries_in"]


def entries_in(storage: Storage, layout: TableLayout, name: str) -> list[ManifestEntry]:
    """The entries of a manifest, in the order they were written, decoded one by one."""
    return [*_decoded(*read_manifest_bytes(storage, layout, name))]


@lru_cache(4096)
def _decoded(content: bytes, uri: str) -> tuple[ManifestEntry, ...]:
    """The manifests of a table are few, and a check of all its files reads each many times."""
    return (*decode_manifest_by_record(content, uri),)
