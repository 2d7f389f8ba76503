# SPDX-License-Identifier: Apache-2.0
"""Operations that Iceberg tables do not have, with advice for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["WITHOUT_MEANING"]

WITHOUT_MEANING: Final[Mapping[str, str]] = {
    "changelog": "it has no changelog files; table.changes(position) reads its changes",
    "ingest_changes": "read table.changes(…) in a function, and write the rows with table.write",
    "partition_marks": "leave out 'done' to wait for rows, or let the writer tag a snapshot",
    "publish": "readers of Iceberg read it in place, so nothing needs to be published",
    "rescale": "its buckets are partitions; run ALTER TABLE … REPLACE PARTITION FIELD in Spark",
    "snapshot_change": "the system table 'entries' has the files of a snapshot",
    "watermarks": "wait for a snapshot, or check the age of the newest time in a column",
}
