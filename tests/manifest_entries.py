"""The entries of a single manifest, one object for each."""

from __future__ import annotations

from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest import ManifestEntry, read_manifests
from lakeformat.storage import Storage

__all__ = ["entries_in"]


def entries_in(storage: Storage, layout: TableLayout, name: str) -> list[ManifestEntry]:
    """The entries of a manifest, in the order they were written, read as every reader does."""
    return read_manifests(storage, layout, [name]).entries()
