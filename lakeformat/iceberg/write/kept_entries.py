# SPDX-License-Identifier: Apache-2.0
"""Keeps the entries of manifests that this process wrote, for the snapshots that it writes next.

Consecutive snapshots often change the same manifest. Reading it again would take longer than
writing it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from lakeformat.iceberg.metadata.inherited_numbers import with_inherited

__all__ = ["KeptEntries"]

_MOST_BYTES = 64 << 20


class KeptEntries:
    """The entries of the manifests that were used last, at most ``most_bytes`` in memory."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._tables: OrderedDict[str, pa.Table] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._tables)

    def keep(self, uri: str, entries: pa.Table) -> None:
        """Keep the entries of a manifest that was written, unless they are too large."""
        if entries.nbytes > self._most:
            return
        # Copied, because a part of a table holds the memory of the whole.
        self._tables[uri] = entries.take(pa.array(np.arange(len(entries))))
        while sum(each.nbytes for each in self._tables.values()) > self._most:
            self._tables.popitem(last=False)

    def keep_only(self, uris: Iterable[str]) -> None:
        """Drop the entries of all manifests except ``uris``, the manifests of the newest
        snapshot.
        """
        needed = {*uris}
        for uri in [each for each in self._tables if each not in needed]:
            del self._tables[uri]

    def of(self, manifest: pa.Table) -> pa.Table | None:
        """Return the entries of a manifest; None if they are not kept.

        The entries have the snapshot ids and sequence numbers that they inherit. ``manifest`` is
        one row of a manifest list.
        """
        [listed] = manifest.to_pylist()
        uri = listed["manifest_path"]
        if uri not in self._tables:
            return None
        self._tables.move_to_end(uri)
        entries = self._tables[uri]
        return with_inherited(entries, [listed], [len(entries)])
