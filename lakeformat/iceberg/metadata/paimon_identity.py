# SPDX-License-Identifier: Apache-2.0
"""The summary key under which a published snapshot stores the identity of its Paimon snapshot.

Metadata with such snapshots belongs to a Paimon table, which alone may change it and delete files.
"""

from __future__ import annotations

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["IDENTITY", "refuse_published"]

IDENTITY = "paimon-commit-identity"
"""The key of a snapshot summary that holds the identity of the Paimon snapshot.

After a rollback another snapshot may have the same number; its identity differs.
"""


def refuse_published(metadata: TableMetadata) -> None:
    """Raise ``UnsupportedError`` if the metadata is published for a Paimon table.

    A change would not reach the Paimon table, and deleted files would be missing there.
    """
    if any(IDENTITY in each.summary for each in metadata.snapshots):
        raise UnsupportedError(
            f"{metadata.location} is published for a Paimon table, so readers of Iceberg can only "
            "read it; nothing was written or deleted. Change, maintain or drop the Paimon table: "
            "each publication shows its newest state here"
        )
