# SPDX-License-Identifier: Apache-2.0
"""The entries of manifest lists: one for each manifest."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakeformat.paimon.metadata.simple_stats import EMPTY_STATS, SimpleStats

__all__ = ["ManifestMeta"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestMeta:
    """The entry of one manifest in a manifest list; members that older writers omit are None."""

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int
    schema_id: int
    partition_stats: SimpleStats = EMPTY_STATS
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None
    named_by: str | None = field(default=None, compare=False, repr=False)
    """The URI of the list from which the entry was read, for errors about the manifest."""
