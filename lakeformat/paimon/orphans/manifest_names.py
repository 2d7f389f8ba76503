# SPDX-License-Identifier: Apache-2.0
"""Reads the file names in a manifest, in this process or in a task of an executor."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lakeformat.files.changelog_packs import is_packed, real_name
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest import ManifestColumns, read_manifests
from lakeformat.paimon.metadata.manifest_list import ManifestMeta
from lakeformat.paimon.orphans.name_set import Numbers, numbers_of
from lakeformat.storage import Storage

__all__ = ["HashedNames", "ManifestNames", "ReadNames", "encoded", "last_part"]


@dataclass(frozen=True, slots=True)
class ManifestNames:
    """The file names in one manifest.

    ``names`` has the names of data files, then the names of extra files, then the last parts of
    external paths. The names are not hashed yet: another process may read the manifest, and its
    hashes would not be valid in this process.
    """

    names: list[bytes]
    is_delete: npt.NDArray[np.bool_]
    """True where the entry deletes the file."""
    files_of: dict[bytes, int] = field(default_factory=dict)
    """The number of entries per partition (a framed binary row); empty if they were not counted."""

    def hashed(self) -> HashedNames:
        """Return the names as hashes, which are valid only in this process."""
        return HashedNames(numbers_of(self.names), self.is_delete)


@dataclass(frozen=True, slots=True)
class HashedNames:
    """The names in one manifest as hashes, which are valid only in this process."""

    numbers: Numbers
    is_delete: npt.NDArray[np.bool_]
    """True where the entry deletes the file."""


@dataclass(frozen=True, slots=True)
class ReadNames:
    """Reads a manifest; it can be pickled and called in another process."""

    storage: Storage
    layout: TableLayout
    is_counted: bool = False
    """True to count the entries of each partition."""

    def __call__(self, manifest: ManifestMeta) -> ManifestNames:
        columns = read_manifests(self.storage, self.layout, [manifest])
        beside = _beside(columns)
        names = [name or b"" for name in columns.file_name.values()]
        names = [real_name(name) if is_packed(name) else name for name in names]
        names += [name for name, _ in beside]
        is_delete = np.append(columns.is_delete, np.array([gone for _, gone in beside], np.bool_))
        counted = Counter(columns.partition.values()) if self.is_counted else {}
        files_of = {partition or b"": count for partition, count in counted.items()}
        return ManifestNames(names, is_delete, files_of)


def encoded(name: str) -> bytes:
    """Return a listed name as the bytes that manifests store; the name may be invalid Unicode."""
    return name.encode(errors="surrogateescape")


def last_part(address: str) -> str:
    """Return the part of a URI or path after the last slash."""
    return address.rpartition("/")[2]


def _beside(columns: ManifestColumns) -> list[tuple[bytes, bool]]:
    """Return the names of extra files and the last parts of external paths.

    Each has the flag True if its entry is a DELETE entry.
    """
    is_delete = columns.is_delete.tolist()
    pairs: list[tuple[bytes, bool]] = []
    if columns.extra_files.counts.any():
        for names, gone in zip(columns.extra_files.texts(), is_delete, strict=True):
            pairs += [(encoded(name), gone) for name in names or ()]
    external = columns.external_path
    if external.present is None or external.present.any():
        for address, gone in zip(external.texts(), is_delete, strict=True):
            if address:
                pairs.append((real_name(encoded(last_part(address))), gone))
    return pairs
