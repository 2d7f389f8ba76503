# SPDX-License-Identifier: Apache-2.0
"""Keeps the results of reading manifests, because many tags share most of their manifests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from lakeformat.paimon.metadata.manifest_list import ManifestMeta

__all__ = ["RecentManifests"]

T = TypeVar("T")
_OVERHEAD = 64
"""The memory that each kept result needs besides its entries, as a number of entries."""


class RecentManifests(Generic[T]):
    """The results of reading recently used manifests; they have at most ``most`` entries in all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[Hashable, tuple[int, T]] = {}
        self._entries = 0

    def each(
        self,
        manifests: Sequence[ManifestMeta],
        read: Callable[[Sequence[ManifestMeta]], Iterable[T]],
    ) -> Iterator[T]:
        """Yield the result of each manifest, in their order.

        ``read`` gets the manifests without a kept result, and returns their results in this order.
        """
        known = [*map(self._get, manifests)]
        pairs = [*zip(manifests, known, strict=True)]
        unread = iter(read([manifest for manifest, found in pairs if found is None]))
        for manifest, found in pairs:
            if found is None:
                result = next(unread)
                self._add(manifest, result)
                yield result
            else:
                yield found[1]

    def _get(self, manifest: ManifestMeta) -> tuple[int, T] | None:
        found = self._found.pop(_key(manifest), None)
        if found is not None:
            self._found[_key(manifest)] = found  # now the last one to drop
        return found

    def _add(self, manifest: ManifestMeta, result: T) -> None:
        entries = manifest.num_added_files + manifest.num_deleted_files + _OVERHEAD
        if _key(manifest) in self._found or entries > self._most:
            return
        self._found[_key(manifest)] = entries, result
        self._entries += entries
        while self._entries > self._most:
            dropped, _ = self._found.pop(next(iter(self._found)))
            self._entries -= dropped


def _key(manifest: ManifestMeta) -> Hashable:
    """Return the key of a result: the file name, and the size and counts that each read checks.

    If another manifest list states a wrong size or count for this manifest, the key differs. So the
    manifest is read again, and the read finds the damage.
    """
    counts = (manifest.num_added_files, manifest.num_deleted_files)
    return manifest.file_name, manifest.file_size, *counts
