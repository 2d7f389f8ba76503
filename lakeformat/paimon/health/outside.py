# SPDX-License-Identifier: Apache-2.0
"""Reports files of the newest snapshot that are outside of the table, in directories that the
caller does not allow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.file_places import data_file_place
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.partition import partition_path
from lakeformat.tables.health.verdict import Reason

__all__ = ["outside_reasons"]


def outside_reasons(handle: TableHandle, live: ManifestColumns) -> tuple[Reason, ...]:
    """Return a severe reason about the first file that a read refuses; ``()`` if there is no such
    file.
    """
    for error in _refusals(handle, live):
        said, _, advice = str(error).rpartition(". ")
        return (Reason(f"reads fail: {said}", advice, is_severe=True),)
    return ()


def _refusals(handle: TableHandle, live: ManifestColumns) -> Iterator[InvalidRequestError]:
    outside = np.flatnonzero(live.external_path.sizes)
    if not len(outside):
        return
    addresses = live.external_path.take(outside).values()
    first: dict[bytes, int] = {}
    for position, address in zip(outside.tolist(), addresses, strict=True):
        first.setdefault((address or b"").rpartition(b"/")[0], position)
    for entry in live.entries(np.array([*first.values()])):
        try:
            directory = partition_path(handle.schema, entry.partition)
            data_file_place(handle, entry.bucket, entry.file, directory)
        except InvalidRequestError as error:
            yield error
